"""Bounds of logs: how much, how long or how often, and what happens beyond."""

from typing import Final

GATHERED_BYTES_PER_LOG_MAX: Final = 256 * 1024
"""Batches of one turn that wait to be written to a log together; beyond it they are written before the turn ends."""

LOOKED_INTO_BYTES_MAX: Final = 16 * 1024 * 1024
"""What a batch may unfold to when a record is looked for by its time; of a larger one the first is given."""

OPEN_SEGMENT_FILES_MAX: Final = 512
"""Segment files held open at once; the ones not used lately are closed and opened again when needed."""

UNVERIFIED_BYTES_PER_READ_MAX: Final = 4 * 1024 * 1024
"""Bytes whose checksums one read verifies before it answers; a longer range is answered in parts."""

VERIFIED_RANGES_PER_SEGMENT_MAX: Final = 256
"""Separate ranges remembered as verified; beyond it the smallest is forgotten and verified again when needed."""

FLAWS_PER_LOG_MAX: Final = 1_000
"""Damaged ranges remembered per log; beyond it those of one segment become one, with what lies between them."""
