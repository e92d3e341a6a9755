"""Where the benchmark keeps what it fetched and compiled: outside the project, shared by all checkouts."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return the folder; it may not exist yet."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "riverlog-bench"


def compiled(cache: Path) -> dict[str, str]:
    """Return an environment in which Python keeps there what it compiled, as of an installed package."""
    return {"PYTHONPYCACHEPREFIX": str(cache / "bytecode"), "PYTHONDONTWRITEBYTECODE": ""}
