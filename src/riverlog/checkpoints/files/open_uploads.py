"""Uploads under way, and which of them makes room when there are too many requests.

Spark keeps an upload open for a whole task, so one may rest for as long as it likes; but not while others have to wait.
Then the one that has rested longest is ended, of the client that has most: so nobody locks out the others.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.limits import CHECKPOINT_UPLOAD_REST_SECONDS


@dataclass(slots=True, eq=False)
class _Upload:
    client: str
    since: float
    ending: asyncio.Timeout
    is_gone: bool = False


class Uploads:
    """The uploads of one store that wait for bytes."""

    def __init__(self) -> None:
        self._resting: dict[_Upload, None] = {}

    @contextmanager
    def resting(self, client: str, ending: asyncio.Timeout) -> Iterator[None]:
        """Count an upload that waits for its next bytes; `ending` ends it."""
        upload = _Upload(client, asyncio.get_running_loop().time(), ending)
        self._resting[upload] = None
        try:
            yield
        finally:
            del self._resting[upload]

    def make_room(self) -> bool:
        """End an upload that rests, and return whether there was one."""
        now = asyncio.get_running_loop().time()
        left = [each for each in self._resting if not each.is_gone]
        count = Counter(each.client for each in left)
        resting = [each for each in left if now - each.since >= CHECKPOINT_UPLOAD_REST_SECONDS]
        if not resting:
            return False
        gone = min(resting, key=lambda each: (-count[each.client], each.since))
        gone.is_gone = True
        gone.ending.reschedule(now)
        return True


def made_room() -> RequestRefused:
    """Return why an upload was ended."""
    return RequestRefused.later("this upload rested while the checkpoint store had too many requests; try again")
