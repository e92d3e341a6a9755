"""The records of the topic. Partition 0 holds what there is: files, folders, uploads, pipelines and the progress of
queries, each under a key that names it, so that compaction keeps the last word about each. Partition 1 holds the
content of files that are too large for one record, in chunks under the file's own id.

A value is one line of JSON; the content of a small file follows it. No value is a tombstone.
"""

import json
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple

from riverlog.checkpoints.limits import CHECKPOINT_CHUNKS_MAX

FACTS: Final = 0
CHUNKS: Final = 1

_FILE: Final = b"file:"
_FOLDER: Final = b"folder:"
_UPLOAD: Final = b"upload:"
_PIPELINE: Final = b"pipeline:"
_PROGRESS: Final = b"progress:"
_CHUNK: Final = b"chunk:"
_INDEX_DIGITS_MAX: Final = 9
_NUMBER_MAX: Final = 2**63 - 1


class Unreadable(Exception):
    """A record that no store has written."""


class CheckpointRecord(NamedTuple):
    """A record to be written."""

    partition: int
    key: bytes
    value: bytes | None


@dataclass(frozen=True, slots=True)
class FileFacts:
    """A file as its record describes it."""

    id: str
    size: int
    modified_ms: int
    user: str = ""
    source: str = ""
    """The path that it was renamed from: to repeat that RENAME is no mistake."""
    chunks: tuple[int, ...] = ()
    """The offsets of its chunks; none where the content follows the facts."""
    chunk_bytes: int = 0
    """The size of every chunk but the last."""


@dataclass(frozen=True, slots=True)
class FileKept:
    path: str
    facts: FileFacts
    content: bytes


@dataclass(frozen=True, slots=True)
class FileGone:
    path: str


@dataclass(frozen=True, slots=True)
class FolderMade:
    path: str


@dataclass(frozen=True, slots=True)
class FolderGone:
    path: str


@dataclass(frozen=True, slots=True)
class UploadBegun:
    """Chunks of a file are being written, at this offset or above."""

    id: str
    first_offset: int


@dataclass(frozen=True, slots=True)
class UploadEnded:
    id: str


@dataclass(frozen=True, slots=True)
class PipelineNoted:
    """The state of a pipeline, read by `pipelines.pipeline`."""

    path: str
    facts: dict[str, Any]
    content: bytes


@dataclass(frozen=True, slots=True)
class PipelineGone:
    path: str


@dataclass(frozen=True, slots=True)
class ProgressNoted:
    """What a query's driver has reported, read by `pipelines.progress`."""

    path: str
    facts: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ProgressGone:
    path: str


Fact = (
    FileKept
    | FileGone
    | FolderMade
    | FolderGone
    | UploadBegun
    | UploadEnded
    | PipelineNoted
    | PipelineGone
    | ProgressNoted
    | ProgressGone
)


def write_fact(fact: Fact) -> CheckpointRecord:
    """Return the record of a fact."""
    match fact:
        case FileKept(path, facts, content):
            return CheckpointRecord(FACTS, _FILE + path.encode(), _line(asdict(facts)) + content)
        case FileGone(path):
            return CheckpointRecord(FACTS, _FILE + path.encode(), None)
        case FolderMade(path):
            return CheckpointRecord(FACTS, _FOLDER + path.encode(), _line({}))
        case FolderGone(path):
            return CheckpointRecord(FACTS, _FOLDER + path.encode(), None)
        case UploadBegun(name, first_offset):
            return CheckpointRecord(FACTS, _UPLOAD + name.encode(), _line({"first_offset": first_offset}))
        case UploadEnded(name):
            return CheckpointRecord(FACTS, _UPLOAD + name.encode(), None)
        case PipelineNoted(path, noted, content):
            return CheckpointRecord(FACTS, _PIPELINE + path.encode(), _line(noted) + content)
        case PipelineGone(path):
            return CheckpointRecord(FACTS, _PIPELINE + path.encode(), None)
        case ProgressNoted(path, noted):
            return CheckpointRecord(FACTS, _PROGRESS + path.encode(), _line(noted))
        case ProgressGone(path):
            return CheckpointRecord(FACTS, _PROGRESS + path.encode(), None)


def read_fact(key: bytes | None, value: bytes | None) -> Fact:
    """Return the fact in a record of partition 0; Unreadable where it is none of ours."""
    kind, colon, name = (key or b"").partition(b":")
    try:
        text = name.decode("utf-8")
        match kind + colon:
            case b"file:":
                return FileGone(text) if value is None else FileKept(text, file_facts(_facts(value)), content_of(value))
            case b"folder:":
                return FolderGone(text) if value is None else FolderMade(text)
            case b"upload:":
                return UploadEnded(text) if value is None else UploadBegun(text, int(_facts(value)["first_offset"]))
            case b"pipeline:":
                return PipelineGone(text) if value is None else PipelineNoted(text, _facts(value), content_of(value))
            case b"progress:":
                return ProgressGone(text) if value is None else ProgressNoted(text, _facts(value))
            case _:
                pass
    except (ValueError, KeyError, TypeError, ArithmeticError, RecursionError) as problem:
        raise Unreadable(f"{key!r}: {problem}") from problem
    raise Unreadable(f"{key!r} is none of a checkpoint store")


def file_facts(facts: dict[str, Any]) -> FileFacts:
    """Read what `write_fact` wrote about a file; ValueError or TypeError where it is something else."""
    file = FileFacts(**{**facts, "chunks": tuple(facts.get("chunks", ()))})
    texts, numbers = (file.id, file.user, file.source), (file.size, file.modified_ms, file.chunk_bytes, *file.chunks)
    if not all(isinstance(text, str) for text in texts) or not file.id.isascii():
        raise ValueError("names of a file are texts")
    if not all(type(number) is int and 0 <= number <= _NUMBER_MAX for number in numbers):
        raise ValueError("sizes, times and offsets of a file are numbers")
    return file


def content_of(value: bytes) -> bytes:
    """Return what follows the facts."""
    return value.partition(b"\n")[2]


def chunk(file_id: str, index: int, content: bytes | None) -> CheckpointRecord:
    """Return the record of a chunk, or its tombstone."""
    return CheckpointRecord(CHUNKS, b"%s%s:%d" % (_CHUNK, file_id.encode(), index), content)


def chunk_owner(key: bytes | None) -> tuple[str, int] | None:
    """Return whose chunk a record of partition 1 is: the file's id, and the number of the chunk in it."""
    name, _, index = (key or b"").removeprefix(_CHUNK).rpartition(b":")
    if not name or not index.isdigit() or len(index) > _INDEX_DIGITS_MAX or int(index) >= CHECKPOINT_CHUNKS_MAX:
        return None
    return name.decode("ascii", "replace"), int(index)


def _line(facts: dict[str, Any]) -> bytes:
    return json.dumps(facts, separators=(",", ":")).encode("ascii") + b"\n"


def _facts(value: bytes) -> dict[str, Any]:
    facts = json.loads(value.partition(b"\n")[0])
    if not isinstance(facts, dict):
        raise ValueError("the facts are no object")
    return facts
