"""Records as Arrow columns: what the Spark source and `riverlog.scan` read, without an object per record.

`columns` names what a record has. `decoding` makes Arrow batches of fetched chunks: by a `kernel` where numba is
installed (`compiled`), without it otherwise (`plain`, which is also what tests compare with). `encoding` is the way
back, with such a pair of its own; `json` types values that are JSON. `reader` fetches ranges of partitions, `positions`
finds where they begin and end, and `scan` is for people at a prompt.
"""
