"""Sequences: alphabets, records, translation, and readers of FASTA and FASTQ."""
