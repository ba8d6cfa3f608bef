"""The results of a search as plain records: arrays of scores for all subjects, hits with alignments for the best."""
