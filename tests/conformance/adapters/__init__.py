"""What a foreign Kafka client can be asked to do, in one shape for all of them.

Each client is one module here with one class: a `Client`, or an `Administrator` if it can also create and change
topics. The class translates, and nothing else: it neither retries nor mends what the broker answered. A broker's
refusal becomes `Refused` with Kafka's error code.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
WAIT_SECONDS_MAX: Final = 15.0
REQUEST_BYTES_MAX: Final = 8 * 1024 * 1024
"""What a client itself may send; above max.message.bytes, so that it is the broker that refuses."""

Acks = Literal[0, 1, "all"]
Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Message:
    """A record to be written; without a partition the client chooses, without a time it takes its clock."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    timestamp_ms: int | None = None
    partition: int | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """A record as it was read."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers

    @property
    def content(self) -> tuple[bytes | None, bytes | None, Headers]:
        """Return what the writer chose: key, value and headers."""
        return self.key, self.value, self.headers


@dataclass(frozen=True, slots=True)
class Placed:
    """Where an acknowledged record lies; the offset is -1 where nobody acknowledged."""

    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How messages are to be written."""

    compression: str
    acks: Acks
    idempotent: bool
    like_java: bool

    @property
    def codec(self) -> str | None:
        """Return the compression as the clients in Python name it."""
        return None if self.compression == "none" else self.compression


class Refused(Exception):
    """The broker said no, with this error code of Kafka's."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


@contextmanager
def refusals(error_type: type[Exception]) -> Iterator[None]:
    """Turn a Python client's errors that have one of Kafka's codes into Refused."""
    try:
        yield
    except error_type as error:
        code = getattr(error, "errno", -1)
        if code > 0:
            raise Refused(code, str(error)) from error
        raise


def stored(record: Any) -> Stored:
    """Translate a record that a client in Python has read."""
    return Stored(record.partition, record.offset, record.timestamp, record.key, record.value, tuple(record.headers))


def placed(found: Mapping[Any, Iterable[Any]]) -> list[Placed]:
    """Name the records that a client in Python has polled, by partition."""
    return [Placed(record.partition, record.offset) for records in found.values() for record in records]


class Client(ABC):
    """A client that writes and reads, without groups."""

    name: ClassVar[str]
    stamps: ClassVar[bool] = True  # whether a record's time can be chosen
    writes_null_headers: ClassVar[bool] = True
    hashes_like_java: ClassVar[bool] = True  # whether keys are placed by murmur2 unless told otherwise

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    @staticmethod
    @abstractmethod
    def version() -> str:
        """Name the client's version; raise ImportError or OSError where it is not installed."""

    def produce(
        self,
        topic: str,
        messages: Sequence[Message],
        *,
        compression: str = "none",
        acks: Acks = "all",
        idempotent: bool = False,
        like_java: bool = False,
    ) -> list[Placed]:
        """Write the messages in order, wait for them all, and return where they lie; raise Refused."""
        return self.write(topic, messages, WriteOptions(compression, acks, idempotent, like_java))

    @abstractmethod
    def write(self, topic: str, messages: Sequence[Message], options: WriteOptions) -> list[Placed]:
        """Do what `produce` promises."""

    @abstractmethod
    def consume(self, topic: str, partition: int, *, count: int, offset: int = 0) -> list[Stored]:
        """Read `count` records of one partition from an offset on; raise Refused or TimeoutError."""

    @abstractmethod
    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        """Find the first record at or after this time."""

    @abstractmethod
    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """Return log start and end offset."""

    @abstractmethod
    def partition_count(self, topic: str) -> int:
        """Return how many partitions an existing topic has."""

    def close(self) -> None:  # noqa: B027 - most clients hold nothing between calls
        """Close all connections."""


class Administrator(Client):
    """A client that can also create, change and delete topics."""

    @abstractmethod
    def create_topic(
        self, topic: str, *, partitions: int = 1, replicas: int = 1, configs: Mapping[str, str] | None = None
    ) -> None: ...

    @abstractmethod
    def delete_topic(self, topic: str) -> None: ...

    @abstractmethod
    def topics(self) -> set[str]: ...

    @abstractmethod
    def create_partitions(self, topic: str, total: int) -> None: ...

    @abstractmethod
    def delete_records(self, topic: str, partition: int, before: int) -> int:
        """Remove all below an offset and give the new log start offset."""

    @abstractmethod
    def configs(self, topic: str) -> dict[str, str | None]: ...

    @abstractmethod
    def alter_config(self, topic: str, name: str, value: str) -> None: ...


Protocol = Literal["classic", "consumer"]
"""How the members of a group agree: among themselves, or as the coordinator says (KIP-848)."""


class Member(ABC):
    """A member of a group. It reads its share of one topic from where the group left off, or else from the start."""

    @abstractmethod
    def poll(self) -> list[Placed]:
        """Wait a moment, and name the records that were read since the last call."""

    @abstractmethod
    def commit(self) -> None:
        """Commit all that `poll` has named."""

    @abstractmethod
    def leave(self) -> None:
        """Leave the group in good order, without another commit."""


class Joins(ABC):
    """What a client can do that reads as a member of a group."""

    @abstractmethod
    def join(self, topic: str, group: str, protocol: Protocol) -> Member:
        """Begin to be a member; the group may take a while to take it in, and needs polling meanwhile."""


class Writer(ABC):
    """A producer with a transactional id."""

    @abstractmethod
    def begin(self) -> None:
        """Begin a transaction."""

    @abstractmethod
    def write(self, topic: str, value: bytes) -> None:
        """Write a record to partition 0, and wait until it is kept; raise Refused."""

    @abstractmethod
    def end(self, *, commits: bool) -> None:
        """Commit or abort; raise Refused."""


class Transacts(ABC):
    """What a client can do that writes in transactions."""

    @abstractmethod
    def transactional(self, transactional_id: str) -> Writer:
        """Return a new producer with this id; it may take over when it is first used."""

    @abstractmethod
    def copy(self, topic: str, output: str, *, group: str, transactional_id: str, count: int, commits: bool) -> None:
        """Copy the group's next records in one transaction with its offsets, and commit or abort it."""


class Deadline:
    """Time left for one wait; the limit is generous, since only a broken run reaches it."""

    def __init__(self, seconds: float = WAIT_SECONDS_MAX) -> None:
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds left; raise TimeoutError when there are none."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError("waited too long")
        return left
