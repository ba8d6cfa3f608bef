"""Sequences: alphabets, records, and reading them from FASTA or FASTQ."""
