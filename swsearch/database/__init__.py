"""The packed database: its format, building it from FASTA, reading it mapped into memory, cutting it up."""
