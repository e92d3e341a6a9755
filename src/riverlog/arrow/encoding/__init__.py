"""Arrow columns to record batches: by a compiled kernel, or row by row."""
