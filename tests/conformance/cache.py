"""Where the conformance tests keep what they fetched and compiled: outside the project, shared by all checkouts."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return the folder; it may not exist yet."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "riverlog" / "conformance"
