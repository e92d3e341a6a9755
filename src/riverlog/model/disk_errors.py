"""What an error of the disk means for the disk: the one place that decides.

Only what the medium itself reports, and a flush that failed, speaks of the whole directory. A process without
descriptors or memory, one file that may not be opened, a name that is gone: that concerns one call, which is refused
and may be tried again.
"""

import errno
from enum import Enum, auto
from typing import Final

NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)
"""Errors of a full disk: the one failure of a write that may pass by itself."""

_NAMES: Final = (
    "EIO", "EROFS", "ENXIO", "ENODEV", "ESTALE",  # broken, mounted read-only after an error, taken away
    "EUCLEAN", "EBADMSG", "EILSEQ", "ENODATA",  # the file system, or the block layer, finds its data damaged
    "EREMOTEIO", "ENOLINK", "ETIMEDOUT", "ENOTCONN", "EHOSTDOWN", "ESHUTDOWN",  # the way to the medium is gone
    "ENOMEDIUM", "EMEDIUMTYPE",
)  # fmt: skip

MEDIUM_FAILED: Final = frozenset(number for name in _NAMES if (number := getattr(errno, name, None)) is not None)
"""Errors of a disk that cannot be relied on any more; not every system has all of them."""


SHORTAGE: Final = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EINTR)
"""Errors of a system that is short of something else than the disk."""


class FlushFailed(OSError):
    """The system was asked to bring something to the medium and could not, for whatever reason.

    It tells that once; asked again, it may say that all is well though the bytes are gone.
    """


class DiskTrouble(Enum):
    """What an error means."""

    FAILED = auto()
    """Nobody knows what the disk has kept, or will keep."""
    FULL = auto()
    """There is no room."""
    MISSING = auto()
    """A file or folder is not there."""
    HINDERED = auto()
    """This call was not possible now; the disk has nothing to do with it."""


def judge(error: OSError) -> DiskTrouble:
    """Return what an error means."""
    if isinstance(error, FlushFailed) or error.errno in MEDIUM_FAILED:
        return DiskTrouble.FAILED
    if error.errno in NO_ROOM:
        return DiskTrouble.FULL
    return DiskTrouble.MISSING if error.errno == errno.ENOENT else DiskTrouble.HINDERED


def may_pass(error: OSError) -> bool:
    """Return whether the same call may succeed later, and nothing was lost by this one."""
    return judge(error) in (DiskTrouble.FULL, DiskTrouble.HINDERED)
