"""Records as Arrow columns: what the Spark source and `riverlog.scan` read, without an object per record.

`columns` names what a record has. `runs` takes fetched chunks apart, `decoder` makes Arrow batches of them: by the
`kernel` where numba is installed (`compiled`), without it otherwise (`plain`, which is also what tests compare with).
The way back is `encoder`: rows (`rows`) to record batches, by `encode_kernel` (`encode_compiled`) or `encode_plain`.
`json_values` types values that are JSON. `reader` fetches ranges of partitions, `places` says where they begin and end,
and `scan` is the door for people.
"""
