"""Folders of the user's own, for the little that sessions of Spark need on a disk: made once, used by all of them."""

import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path


def caches(environment: Mapping[str, str]) -> Iterator[Path]:
    """Return the folders that can be used: the user's cache, then one of the user's own among the temporary files."""
    for folder in _named(environment):
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if folder.stat().st_uid == os.getuid():  # another owner could put other programs there
                yield folder
        except OSError:
            continue


def _named(environment: Mapping[str, str]) -> Iterator[Path]:
    if cache := environment.get("XDG_CACHE_HOME"):
        yield Path(cache) / "riverlog"
    elif home := environment.get("HOME"):
        yield Path(home) / ".cache" / "riverlog"
    yield Path(tempfile.gettempdir()) / f"riverlog-{os.getuid()}"
