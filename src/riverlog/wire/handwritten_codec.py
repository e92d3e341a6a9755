"""Produce and Fetch by hand, for the one shape that makes up nearly all traffic.

One topic, one partition, no errors, no tagged fields, a version that current clients use: then a message is one or two
structs. Whatever looks different, or wrong, is left to the compiled codec, which also finds the words for what
is wrong. So nothing is decided twice, and a test holds both codecs against each other on the same bytes.
"""

import struct
from collections.abc import Callable
from struct import Struct
from typing import Final, NamedTuple

from riverlog.model.ports import FileRange
from riverlog.wire.primitives import FramePart, long_varint, varint_bytes

NULL: Final = 0
EMPTY: Final = 1
ONE: Final = 2
"""Compact counts: the wire adds one, so that 0 is null."""
FIRST_VERSION_BY_HAND: Final = 9
"""From this version on Produce has compact lengths and tagged fields."""
FIRST_FETCH_BY_HAND: Final = 12
"""From this version on Fetch has."""
FIRST_VERSION_BY_ID: Final = 13
"""From this version on topics have ids and no names, in Produce and in Fetch."""
NO_TAGS: Final = b"\0\0\0"
"""No tagged fields behind a partition, its topic and the message."""
FETCH_END: Final = bytes((0, 0, EMPTY, EMPTY, 0))
"""No tagged fields of a partition and its topic, no forgotten topics, no rack, no tagged fields."""


class OneHead(NamedTuple):
    """A Produce request for one partition, up to its batch; the topic is its name or, from version 13, its id."""

    transactional_id: bytes | None
    acks: int
    timeout_ms: int
    topic: bytes
    partition: int
    end: int
    """Where the batch's length stands."""


def read_one_head(buffer: memoryview, start: int, version: int) -> OneHead | None:
    """Read a Produce request of the common shape up to its batch; None for any other."""
    transactional_id: bytes | None = None
    try:
        if (id_length := buffer[start]) != NULL:
            if not EMPTY < id_length < 128:
                return None
            transactional_id = bytes(buffer[start + 1 : start + id_length])
            start += id_length - 1  # what follows is read as behind an id that is null
        if version >= FIRST_VERSION_BY_ID:
            _, acks, timeout_ms, topics, topic, partitions, index = _HEAD_BY_ID(buffer, start)
            end = start + 29
        else:
            _, acks, timeout_ms, topics, name_length = _HEAD_BY_NAME(buffer, start)
            name_end = start + 8 + name_length
            topic = bytes(buffer[start + 9 : name_end])
            partitions, index = _HEAD_OF_PARTITION(buffer, name_end)
            if not EMPTY <= name_length < 128:
                return None
            end = name_end + 5
    except (struct.error, IndexError):
        return None
    if not topics == partitions == ONE:
        return None
    return OneHead(transactional_id, acks, timeout_ms, topic, index, end)


def read_last_batch(buffer: memoryview, position: int) -> memoryview | None:
    """Read the batch that stands at the end of a Produce request of the common shape; None for any other."""
    try:
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_varint(buffer, position, length)
        stop = position + length - 1
        if buffer[stop] or buffer[stop + 1] or buffer[stop + 2] or not length:
            return None
    except IndexError:
        return None
    return buffer[position:stop]


def one_answer(topic: bytes, version: int, index: int) -> Callable[[int, int, int, int], bytes]:
    """Return the form of a whole response, frame and header included, to batches that this partition accepted.

    To be filled in are the correlation id, the batch's offset and time stamp, and the offset where the log starts.
    """
    name = topic if version >= FIRST_VERSION_BY_ID else bytes((len(topic) + 1,)) + topic
    head = b"".join((bytes((0, ONE)), name, _NO_ERROR(ONE, index)))
    pack = Struct(f">ii{len(head)}sqqq{len(_ANSWER_REST)}s").pack
    length = 4 + len(head) + 24 + len(_ANSWER_REST)

    def fill_in(correlation_id: int, base_offset: int, stamp_ms: int, log_start_offset: int) -> bytes:
        return pack(length, correlation_id, head, base_offset, stamp_ms, log_start_offset, _ANSWER_REST)

    return fill_in


class OneFetch(NamedTuple):
    """A consumer's Fetch request for one partition, up to the offset; the topic is its name or its id, as above."""

    wait_ms: int
    bytes_min: int
    bytes_max: int
    isolation_level: int
    session_epoch: int
    topic: bytes
    partition: int
    leader_epoch: int
    end: int
    """Where the offset stands."""


def read_one_fetch(buffer: memoryview, start: int, version: int) -> OneFetch | None:
    """Read a Fetch request of the common shape up to its offset; None for any other."""
    try:
        if version < _FIRST_FETCH_WITHOUT_REPLICA:
            if _REPLICA(buffer, start) != _NO_REPLICA:
                return None
            start += 4
        wait_ms, bytes_min, bytes_max, isolation_level, _, session_epoch, topics = _FETCH(buffer, start)
        start += 22
        if version >= FIRST_VERSION_BY_ID:
            stop = start + 16
        else:
            name_length = buffer[start]
            start += 1
            stop = start + name_length - 1
            if not EMPTY <= name_length < 128:
                return None
        partitions, index, leader_epoch = _FETCHED_PARTITION(buffer, stop)
    except (struct.error, IndexError):
        return None
    if not topics == partitions == ONE:
        return None
    topic = bytes(buffer[start:stop])
    return OneFetch(wait_ms, bytes_min, bytes_max, isolation_level, session_epoch, topic, index, leader_epoch, stop + 9)


def read_fetch_end(buffer: memoryview, position: int) -> tuple[int, int] | None:
    """Read the offset and the limit with which a Fetch request of the common shape ends; None for any other."""
    if len(buffer) - position != 29:
        return None
    offset, bytes_max, end = _FETCH_REST(buffer, position)
    return (offset, bytes_max) if end == FETCH_END else None


Fetched = Callable[[int, int, int, int, bytes | FileRange], list[FramePart]]


def one_fetched(topic: bytes, version: int, index: int, *, committed: bool) -> Fetched:
    """Return the form of a whole response, frame and header included, with what was read of this partition.

    To be filled in are the correlation id, high watermark, last stable offset, the offset where the log starts and the
    records. Where those of transactions are asked for, the form says that none was aborted.
    """
    name = topic if version >= FIRST_VERSION_BY_ID else bytes((len(topic) + 1,)) + topic
    head = b"".join((bytes(11), bytes((ONE,)), name, _NO_ERROR(ONE, index)))
    pack = Struct(f">ii{len(head)}sqqqBi").pack
    head_bytes = 4 + len(head) + 29
    aborted = EMPTY if committed else NULL

    def fill_in(
        correlation_id: int, high_watermark: int, stable_offset: int, start_offset: int, records: bytes | FileRange
    ) -> list[FramePart]:
        size = records.size if isinstance(records, FileRange) else len(records)
        count = varint_bytes(size + 1)
        length = head_bytes + len(count) + size + len(NO_TAGS)
        filled = pack(length, correlation_id, head, high_watermark, stable_offset, start_offset, aborted, _ANY_REPLICA)
        if isinstance(records, FileRange) or size > _COPIED_BYTES_MAX:
            return [filled + count, records, NO_TAGS]
        return [b"".join((filled, count, records, NO_TAGS))]

    return fill_in


_HEAD_BY_NAME: Final = Struct(
    ">BhiBB"
).unpack_from  # length of the transactional id, acks, time-out, topics, length of the name
_HEAD_OF_PARTITION: Final = Struct(">Bi").unpack_from  # partitions, index
_HEAD_BY_ID: Final = Struct(">BhiB16sBi").unpack_from  # as above, with the topic's id in between
_NO_ERROR: Final = Struct(">Bixx").pack  # partitions, index, error code
_ANSWER_REST: Final = bytes((EMPTY, NULL)) + bytes(2 + 4 + 1)
"""Record errors and message; no tags for the partition and the topic; throttle time; no tags."""

_FIRST_FETCH_WITHOUT_REPLICA: Final = 15
_REPLICA: Final = Struct(">i").unpack_from
_NO_REPLICA: Final = (-1,)
_ANY_REPLICA: Final = -1
_COPIED_BYTES_MAX: Final = 512  # of records: an answer in one piece is sent without more ado
_FETCH: Final = Struct(">iiibiiB").unpack_from  # wait, least and most bytes, isolation, session and its epoch, topics
_FETCHED_PARTITION: Final = Struct(">Bii").unpack_from  # partitions, index, leader epoch
_FETCH_REST: Final = Struct(">q12xi5s").unpack_from  # offset, a follower's epoch and log start, most bytes, the end
