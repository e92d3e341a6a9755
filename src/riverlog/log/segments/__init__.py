"""The segments of a log: files of batches with their indexes, open files, verified ranges and known damage."""
