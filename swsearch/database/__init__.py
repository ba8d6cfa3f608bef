"""The packed database: its format, its construction from FASTA, memory-mapped reading, changes, and partitions."""
