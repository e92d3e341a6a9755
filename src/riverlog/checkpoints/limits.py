"""Bounds of the checkpoint store: how much, how long or how often, and what happens beyond."""

from typing import Final

CHECKPOINT_PATH_BYTES_MAX: Final = 2_048
"""Bytes of a path in the checkpoint store; longer ones are refused."""

CHECKPOINT_PATH_DEPTH_MAX: Final = 64
"""Folders that lie in one another in the checkpoint store; deeper paths are refused."""

CHECKPOINT_FILES_MAX: Final = 500_000
"""Files and folders in the checkpoint store; further ones are refused."""

CHECKPOINT_INLINE_BYTES_MAX: Final = 64 * 1024
"""A file of the checkpoint store up to this size is one record; a temporary one of this size is in memory, too."""

CHECKPOINT_CHUNK_BYTES: Final = 512 * 1024
"""A larger file is written in chunks of this size, as its bytes arrive."""

CHECKPOINT_CHUNKS_MAX: Final = 20_000
"""Chunks of one file; a longer file (about 10 GB) is refused when it gets there."""

CHECKPOINT_TEMPORARY_BYTES_MAX: Final = 16 * 1024 * 1024
"""Bytes of all temporary files in memory; beyond it a new one is written as a chunk at once."""

CHECKPOINT_TEMPORARY_FILES_MAX: Final = 10_000
"""Temporary files at a time; one more and the oldest is deleted: whoever made it has long gone."""

CHECKPOINT_TEMPORARY_MS_MAX: Final = 24 * 3_600_000
"""The age of a temporary file that nobody has renamed; older ones are deleted when the next one comes."""

CHECKPOINT_WRITE_BYTES_MAX: Final = 4 * 1024 * 1024
"""Bytes of the changes that the checkpoint store writes in one transaction; one that is larger goes alone."""

CHECKPOINT_UNREADABLE_NAMED_MAX: Final = 10
"""Records that the checkpoint store cannot read and names in the log; the others are counted."""

CHECKPOINT_TOPIC_CHECKED_SECONDS: Final = 5.0
"""How often a checkpoint store in use looks whether its topic is still there."""

CHECKPOINT_REQUESTS_MAX: Final = 512
"""Requests that the checkpoint store deals with at a time; one more ends one that rests, or tries again."""

CHECKPOINT_UPLOAD_REST_SECONDS: Final = 5.0
"""An upload that has rested for so long makes room when the checkpoint store has too many requests."""

CHECKPOINT_RUNS_REMEMBERED_MAX: Final = 64
"""Runs of a pipeline that were replaced, and are known to be; one that is older looks like a new one."""

CHECKPOINT_STARTS_REMEMBERED_MAX: Final = 4_096
"""Checkpoints whose queries have started and not yet written; of a forgotten one the first batch may be refused."""

CHECKPOINT_PLANS_REMEMBERED_MAX: Final = 256
"""Checkpoints whose last `offsets/N` is in memory, at most 64 KiB each; others are read once more when committed."""

CHECKPOINT_ARRIVAL_SECONDS_MAX: Final = 30.0
"""How long a commit waits for another driver that starts on the same checkpoint, so that it can take over."""

CHECKPOINT_ARRIVAL_PAUSE_SECONDS_MIN: Final = 60.0
"""How long no commit waits for drivers on a checkpoint where one was waited for in vain; each time twice as long."""

CHECKPOINT_ARRIVAL_PAUSE_SECONDS_MAX: Final = 3_600.0
"""The longest such time."""

CHECKPOINT_PIPELINES_MAX: Final = 256
"""Pipelines whose sinks write in shared transactions; one more takes the place of one without a plan, or is refused."""

PROGRESS_REPORTED_MAX: Final = 2_048
"""Queries whose drivers report their progress; the reports of further ones are refused, and their queries go on."""

PROGRESS_RUNS_MAX: Final = 16
"""Runs of one query that are remembered; one more and one that is over is forgotten, else the longest silent."""

PROGRESS_KEPT_EVERY_MS: Final = 10_000
"""How often the latest report of a query is written down; when a run begins or ends it is at once."""

PROGRESS_SILENT_MS_MAX: Final = 30_000
"""A query whose driver has not reported for so long may not be running any more."""

PROGRESS_ERROR_LENGTH_MAX: Final = 2_000
"""Characters of an error that a driver reports; the rest is cut."""

CHECKPOINT_CALL_BYTES_MAX: Final = 256 * 1024
"""The longest body of a call by a pipeline's sink: all members of a batch must fit."""

CHECKPOINT_COMMIT_BYTES_MAX: Final = 512 * 1024
"""The longest `commits/N` and `offsets/N` that are decided about, or looked into; a longer `commits/N` is refused."""
