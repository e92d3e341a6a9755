"""Batches that are written together: all of them are in the file afterwards, or none."""

import errno
from collections.abc import Sequence
from dataclasses import dataclass

from riverlog.model.disk_errors import DiskTrouble, judge
from riverlog.model.ids import Offset
from riverlog.model.ports import Buffer, File

GatheredBatch = tuple[Buffer, Offset, Offset, int, int]
"""A batch that is about to be written, its first and last offset, its first and last time. A bare tuple: there is one
for every request."""


@dataclass(slots=True)  # not frozen, nor a named tuple: those take twice as long to make
class AppendResult:
    """Where a batch lies now; a duplicate lies where it was written the first time."""

    base_offset: Offset
    last_offset: Offset
    log_append_time_ms: int
    """The broker's stamp, or NO_TIMESTAMP where records keep their own time."""
    duplicate: bool


def write_gathered(file: File, position: int, gathered: Sequence[GatheredBatch]) -> None:
    """Write batches one behind the other at the end of a file; on OSError no whole one is left there.

    Where that cannot be seen to now, the file must be cut before anything else is written to it.
    """
    try:
        file.write(position, [each[0] for each in gathered])
    except OSError:
        if len(gathered) > 1:  # some may be whole, and a recovery would keep them though they were refused
            try:
                file.truncate(position)
            except OSError as error:  # even a full disk: this one cannot be got over
                if judge(error) is not DiskTrouble.HINDERED:
                    raise OSError(errno.EIO, f"a failed write could not be taken back ({error})") from error
        raise
