"""Paths of files: `/pipelines/orders/offsets/7`. What is no such path is refused before anybody looks for it."""

import re
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.limits import CHECKPOINT_PATH_BYTES_MAX, CHECKPOINT_PATH_DEPTH_MAX

ROOT = "/"
_LOCATION = re.compile(r"(?:([^:/]+):)?(?://([^/]*))?(.*)", re.DOTALL)


class Location(NamedTuple):
    """Where a program says that a checkpoint lies; parts that are not named are empty."""

    scheme: str
    address: str
    path: str


class LogFile(NamedTuple):
    """A file of a query's log: `offsets/7` or `commits/7` under the query's checkpoint."""

    checkpoint: str
    log: str
    number: int


def parse_location(text: str) -> Location:
    """Read a location as Spark does: it is no URL, so `%20`, `#` and `?` are nothing but parts of names."""
    found = _LOCATION.fullmatch(text)
    assert found is not None, "any text is one"
    return Location(found[1] or "", found[2] or "", found[3])


def parse_path(quoted: bytes) -> str:
    """Read a path as it stands in a URL; RequestRefused where it is none."""
    try:
        text = unquote_to_bytes(quoted).decode("utf-8")
    except UnicodeDecodeError:
        raise RequestRefused.illegal("the path is not in UTF-8") from None
    return check_path(text)


def check_path(text: str) -> str:
    """Return the path without doubled slashes or one at its end; RequestRefused where it is none."""
    if len(text.encode("utf-8", "surrogatepass")) > CHECKPOINT_PATH_BYTES_MAX:
        raise RequestRefused.illegal(f"the path has more than {CHECKPOINT_PATH_BYTES_MAX} bytes")
    if not text.startswith("/"):
        raise RequestRefused.illegal("the path does not begin with a slash")
    if not text.isprintable():
        raise RequestRefused.illegal("the path has characters that cannot be shown")
    names = [name for name in text.split("/") if name]
    if "." in names or ".." in names:
        raise RequestRefused.illegal("the path has . or .. in it")
    if len(names) > CHECKPOINT_PATH_DEPTH_MAX:
        raise RequestRefused.illegal(f"the path is deeper than {CHECKPOINT_PATH_DEPTH_MAX} folders")
    return "/" + "/".join(names)


def names_of(path: str) -> list[str]:
    """Return the names from the root down."""
    return path[1:].split("/") if path != ROOT else []


def is_temporary(path: str) -> bool:
    """Return whether Spark will rename this file once it is whole: `.7.<uuid>.tmp`."""
    name = path.rpartition("/")[2]
    return name.startswith(".") and name.endswith(".tmp")


def are_related(one: str, other: str) -> bool:
    """Return whether a change of one path may matter to the other: they are equal, or one lies below the other."""
    return one == other or is_below(one, other) or is_below(other, one)


def is_below(path: str, folder: str) -> bool:
    return path.startswith(folder if folder == ROOT else folder + "/")


def related_to_any(paths: Iterable[str], others: Iterable[str]) -> bool:
    others = list(others)
    return any(are_related(path, other) for path in paths for other in others)


def log_file_of(path: str) -> LogFile | None:
    """Read `<checkpoint>/<log>/<number>`; None for every other path."""
    folder, _, name = path.rpartition("/")
    checkpoint, _, log = folder.rpartition("/")
    if not checkpoint or not name.isascii() or not name.isdigit() or len(name) > 18 or name != str(int(name)):
        return None
    return LogFile(checkpoint, log, int(name))
