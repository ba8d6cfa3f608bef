"""Reports: one file a format, each written from the records alone."""
