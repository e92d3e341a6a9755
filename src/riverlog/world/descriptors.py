"""How many files and sockets this process may have open: its soft limit, raised to the hard one."""

import resource
from typing import Final

_ENOUGH: Final = 1024 * 1024
"""More is of no use, and programs that are started from here would look through all of them."""


def raise_descriptor_limit() -> int:
    """Raise the soft limit as far as the system lets us, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return descriptor_limit()
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):  # macOS has a lower limit that it does not tell
        pass
    return descriptor_limit()


def descriptor_limit() -> int:
    """Return how many descriptors this process may have."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _ENOUGH if soft == resource.RLIM_INFINITY else min(soft, _ENOUGH)
