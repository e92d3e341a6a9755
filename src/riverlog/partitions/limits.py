"""Bounds of partitions and their disks: how much, how long or how often, and what happens beyond."""

from typing import Final

DISK_RESERVE_BYTES: Final = 32 * 1024 * 1024
"""Free room below which a log directory takes no more records: checkpoints and metadata still need some."""

FLUSHES_UNDER_WAY_MAX: Final = 32
"""Flushes of a log directory that are under way at once; those that wait cover more when their turn comes."""

COLD_READS_UNDER_WAY_MAX: Final = 4
"""Reads of bytes that are not in memory that are under way at once; fewer than workers, so that flushes go on."""

COLD_READ_BYTES_MIN: Final = 256 * 1024
"""What is read into memory at least, where something is not there."""

COLD_READ_BYTES_MAX: Final = 16 * 1024 * 1024
"""What is read into memory at most: twice as much each time, for those who go through a file."""

COLD_READ_TRUSTED_SECONDS: Final = 5.0
"""How long after such a read its bytes should still be in memory; if they are not, another one would not help."""

COLD_READS_REMEMBERED_MAX: Final = 1024
"""Such reads that are remembered for that; older ones are forgotten, and their bytes read once more."""

RECOVERED_AT_ONCE_BYTES_MAX: Final = 1024 * 1024
"""Bytes that are read and checked on the loop when a log is opened after a crash; more is done elsewhere."""

RECOVERED_BY_THREADS_BYTES_MAX: Final = 8 * 1024 * 1024
"""Bytes of one step of recovery that are not worth another process."""

RECOVERY_STEP_BYTES: Final = 32 * 1024 * 1024
"""Bytes after which a step of recovery takes no more logs: a log that is asked for next waits no longer than that."""

RECOVERY_STEP_LOGS_MAX: Final = 64
"""Logs that one step of recovery opens."""

RECOVERY_WAIT_SECONDS_MAX: Final = 5.0
"""How long requests wait for a log that is being recovered; then they are told to try again."""

FLUSH_TRIES_AT_STOP_MAX: Final = 20
"""How often a stopping node tries again to begin flushes for want of descriptors; then the next start recovers."""

RECOVERY_RETRY_SECONDS: Final = 1.0
"""How long requests for a log that could not be opened are refused before it is tried again."""

LOGS_CLOSING_MAX: Final = 16
"""Logs of a directory that are flushed at once when a node stops."""

CHECKPOINT_TRIES_MAX: Final = 10
"""How often a checkpoint is begun anew because a partition was created or deleted meanwhile; then the next one does."""
