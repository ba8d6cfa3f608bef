"""What a search finds, as plain records: columns while there are many, hits with alignments once few."""
