"""Waiting for what another process does, by looking again and again; no test waits for a time instead."""

import time
from collections.abc import Callable
from typing import Final

SECONDS_MAX: Final = 30.0
_POLL_SECONDS: Final = 0.02


def until(condition: Callable[[], bool], complaint: Callable[[], str], *, seconds_max: float = SECONDS_MAX) -> None:
    """Wait for something that must come; fail with the complaint if it does not."""
    deadline = time.monotonic() + seconds_max
    while not condition():
        assert time.monotonic() < deadline, complaint()
        time.sleep(_POLL_SECONDS)
