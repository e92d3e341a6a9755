"""A Kafka client of plain bytes: what no well-behaved client sends can be sent, and answers are read byte by byte.

It shares nothing with riverlog's own codec, so that a mistake there cannot hide here. Only the classic
(non-flexible) encoding is written, since every API used here still speaks it.
"""

import itertools
import socket
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self, TypeVar

from fastcrc.crc32 import iscsi as crc32c

PRODUCE, FETCH, METADATA, API_VERSIONS, CREATE_TOPICS, INIT_PRODUCER_ID = 0, 1, 3, 18, 19, 22
PRODUCE_VERSION, FETCH_VERSION, METADATA_VERSION, CREATE_TOPICS_VERSION = 8, 4, 4, 2

ANSWER_SECONDS_MAX: Final = 10.0
CLIENT_ID: Final = "raw"

T = TypeVar("T")


class Closed(Exception):
    """The broker closed the connection."""


class Connection:
    """One connection; requests may be sent ahead of their answers."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS_MAX)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_ids = itertools.count(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def send(self, api: int, version: int, body: bytes, *, flexible: bool = False) -> int:
        """Send one request and give its correlation id."""
        correlation_id = next(self._correlation_ids)
        self.send_bytes(frame(header(api, version, correlation_id, flexible=flexible) + body))
        return correlation_id

    def send_bytes(self, content: bytes) -> None:
        self._socket.sendall(content)

    def finish_sending(self) -> None:
        """Announce that no more will come, while still listening."""
        self._socket.shutdown(socket.SHUT_WR)

    def receive(self) -> tuple[int, "Reader"]:
        """Take the next answer: its correlation id and the rest."""
        (length,) = struct.unpack(">i", self._exactly(4))
        answer = Reader(self._exactly(length))
        return answer.int32(), answer

    def request(self, api: int, version: int, body: bytes, *, flexible: bool = False) -> "Reader":
        """Send one request and take its answer."""
        correlation_id = self.send(api, version, body, flexible=flexible)
        answered, answer = self.receive()
        assert answered == correlation_id
        return answer

    def is_closed(self) -> bool:
        """Wait for the broker to hang up; False if it sends something instead."""
        try:
            return self._socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def _exactly(self, count: int) -> bytes:
        received = bytearray()
        while len(received) < count:
            try:
                part = self._socket.recv(count - len(received))
            except ConnectionResetError:
                part = b""
            if not part:
                raise Closed
            received += part
        return bytes(received)


class Reader:
    """Takes values off the front of an answer."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.position = 0

    def take(self, count: int) -> bytes:
        taken = self.content[self.position : self.position + count]
        assert len(taken) == count, f"the answer ends {count - len(taken)} bytes early"
        self.position += count
        return taken

    def int8(self) -> int:
        return int.from_bytes(self.take(1), signed=True)

    def int16(self) -> int:
        return int.from_bytes(self.take(2), signed=True)

    def int32(self) -> int:
        return int.from_bytes(self.take(4), signed=True)

    def int64(self) -> int:
        return int.from_bytes(self.take(8), signed=True)

    def varint(self) -> int:
        """Take an unsigned variable-length number."""
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def string(self) -> str | None:
        size = self.int16()
        return None if size < 0 else self.take(size).decode()

    def bytes(self) -> bytes:
        return self.take(max(0, self.int32()))

    def array(self, item: Callable[[], T]) -> list[T]:
        return [item() for _ in range(max(0, self.int32()))]

    @property
    def done(self) -> bool:
        return self.position == len(self.content)


def frame(content: bytes) -> bytes:
    """Put the length in front."""
    return struct.pack(">i", len(content)) + content


def header(api: int, version: int, correlation_id: int, *, flexible: bool = False) -> bytes:
    return struct.pack(">hhi", api, version, correlation_id) + string(CLIENT_ID) + (b"\0" if flexible else b"")


def string(text: str | None) -> bytes:
    return b"\xff\xff" if text is None else struct.pack(">h", len(text.encode())) + text.encode()


def array(items: Sequence[bytes]) -> bytes:
    return struct.pack(">i", len(items)) + b"".join(items)


def signed_varint(value: int) -> bytes:
    rest = (value << 1) ^ (value >> 63)
    encoded = bytearray()
    while rest >= 0x80:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*encoded, rest])


def batch(
    *values: bytes,
    magic: int = 2,
    attributes: int = 0,
    timestamp_ms: int = 1_700_000_000_000,
    count: int | None = None,
    last_offset_delta: int | None = None,
    crc: int | None = None,
    producer: tuple[int, int, int] = (-1, -1, -1),
) -> bytes:
    """Build a record batch, honest unless told otherwise."""
    records = b"".join(_record(index, value) for index, value in enumerate(values))
    count = len(values) if count is None else count
    delta = len(values) - 1 if last_offset_delta is None else last_offset_delta
    checked = struct.pack(">hiqqqhii", attributes, delta, timestamp_ms, timestamp_ms, *producer, count) + records
    checksum = crc32c(checked) if crc is None else crc
    return struct.pack(">qiibI", 0, 9 + len(checked), -1, magic, checksum) + checked


def _record(index: int, value: bytes) -> bytes:
    content = (
        b"\0" + signed_varint(0) + signed_varint(index) + signed_varint(-1) + signed_varint(len(value)) + value + b"\0"
    )
    return signed_varint(len(content)) + content


def old_message(value: bytes, magic: int) -> bytes:
    """Build a message set of the formats before record batches, 0 or 1."""
    checked = struct.pack(">bb", magic, 0) + (struct.pack(">q", 0) if magic else b"")
    checked += struct.pack(">ii", -1, len(value)) + value
    message = struct.pack(">I", zlib.crc32(checked)) + checked
    return struct.pack(">qi", 0, len(message)) + message


@dataclass(frozen=True, slots=True)
class Produced:
    error: int
    base_offset: int


def produce_body(topic: str, records: bytes | None, *, partition: int = 0, acks: int = -1) -> bytes:
    carried = struct.pack(">i", -1) if records is None else struct.pack(">i", len(records)) + records
    partitions = array([struct.pack(">i", partition) + carried])
    return string(None) + struct.pack(">hi", acks, 5000) + array([string(topic) + partitions])


def produced(answer: Reader) -> Produced:
    """Read a Produce answer for one partition."""

    def partition() -> Produced:
        answer.int32()
        error, base_offset = answer.int16(), answer.int64()
        answer.take(16)  # log append time, log start offset
        answer.array(lambda: (answer.int32(), answer.string()))
        answer.string()
        return Produced(error, base_offset)

    def topic() -> list[Produced]:
        answer.string()
        return answer.array(partition)

    ((result,),) = answer.array(topic)
    answer.int32()
    assert answer.done
    return result


@dataclass(frozen=True, slots=True)
class Fetched:
    error: int
    high_watermark: int
    records: bytes

    @property
    def batches(self) -> list[tuple[int, int]]:
        """Return base offset and codec of each whole batch."""
        found, position = [], 0
        while len(self.records) - position >= 61:
            base_offset, length = struct.unpack_from(">qi", self.records, position)
            (attributes,) = struct.unpack_from(">h", self.records, position + 21)
            if position + 12 + length > len(self.records):
                break
            found.append((base_offset, attributes & 7))
            position += 12 + length
        return found


def fetch_body(
    topic: str,
    offset: int,
    *,
    partition: int = 0,
    partitions: Sequence[int] = (),
    wait_ms: int = 0,
    bytes_min: int = 1,
    bytes_max: int = 1 << 25,
    partition_bytes_max: int = 1 << 20,
) -> bytes:
    wanted = array([struct.pack(">iqi", index, offset, partition_bytes_max) for index in partitions or [partition]])
    return struct.pack(">iiiib", -1, wait_ms, bytes_min, bytes_max, 0) + array([string(topic) + wanted])


def fetched(answer: Reader) -> Fetched:
    """Read a Fetch answer for one partition."""
    (result,) = fetched_all(answer)
    return result


def fetched_all(answer: Reader) -> list[Fetched]:
    """Read a Fetch answer for partitions of one topic."""

    def partition() -> Fetched:
        answer.int32()
        error, high_watermark = answer.int16(), answer.int64()
        answer.int64()
        answer.array(lambda: answer.take(16))
        return Fetched(error, high_watermark, answer.bytes())

    def topic() -> list[Fetched]:
        answer.string()
        return answer.array(partition)

    answer.int32()
    (results,) = answer.array(topic)
    assert answer.done
    return results


def create_topic(
    connection: Connection, name: str, *, partitions: int = 1, configs: dict[str, str] | None = None
) -> int:
    """Create a topic and give the error code."""
    settings = array([string(key) + string(value) for key, value in (configs or {}).items()])
    topic = string(name) + struct.pack(">ih", partitions, 1) + array([]) + settings
    answer = connection.request(CREATE_TOPICS, CREATE_TOPICS_VERSION, array([topic]) + struct.pack(">ib", 10_000, 0))
    answer.int32()
    ((_, code, _),) = answer.array(lambda: (answer.string(), answer.int16(), answer.string()))
    return code


def metadata_errors(connection: Connection, *topics: str) -> list[int]:
    """Ask for topics without creating them; give the error code of each."""

    def partition() -> None:
        answer.take(10)
        answer.array(answer.int32)
        answer.array(answer.int32)

    def topic() -> int:
        error = answer.int16()
        answer.string()
        answer.int8()
        answer.array(partition)
        return error

    answer = connection.request(METADATA, METADATA_VERSION, array([string(topic) for topic in topics]) + b"\0")
    answer.int32()
    answer.array(lambda: (answer.int32(), answer.string(), answer.int32(), answer.string()))
    answer.string()
    answer.int32()
    errors = answer.array(topic)
    assert answer.done
    return errors


def new_producer(connection: Connection) -> tuple[int, int]:
    """Take a producer id and its epoch, as an idempotent producer does."""
    answer = connection.request(INIT_PRODUCER_ID, 0, string(None) + struct.pack(">i", 60_000))
    answer.int32()
    assert answer.int16() == 0
    producer = answer.int64(), answer.int16()
    assert answer.done
    return producer
