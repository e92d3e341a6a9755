"""Produce and Fetch by hand, for the one shape that makes up nearly all traffic.

One topic, one partition, no errors, no tagged fields, a version that current clients use: then a message is one or two
structs. Whatever looks different, or wrong, is left to the compiled codec, which also finds the words for what
is wrong. So nothing is decided twice, and a test holds both codecs against each other on the same bytes.
"""

import struct
from collections.abc import Callable
from struct import Struct
from typing import Any, Final, NamedTuple

from riverlog.model.ports import FileRange
from riverlog.wire.messages.fetch import (
    HIGH_WATERMARK_UNKNOWN,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from riverlog.wire.primitives import Decoder, Encoder, Part, long_varint, uuid_of, varint_rest
from riverlog.wire.types import NO_UUID

NULL: Final = 0
EMPTY: Final = 1
ONE: Final = 2
"""Compact counts: the wire adds one, so that 0 is null."""
FIRST_VERSION_BY_HAND: Final = 9
"""From this version on Produce has compact lengths and tagged fields."""
FIRST_VERSION_BY_ID: Final = 13
"""From this version on topics have ids and no names, in Produce and in Fetch."""
NO_TAGS: Final = b"\0\0\0"
"""No tagged fields behind a partition, its topic and the message."""
BOTH_EMPTY: Final = EMPTY << 8 | EMPTY
"""Two neighbouring compact counts, read as one number."""


def decoder(declaration: type[Any], version: int, compiled: Decoder) -> Decoder:
    """Give the decoder by hand where there is one, else the compiled one."""
    if declaration is FetchRequest and version >= 15:
        return _fetch_request(compiled)
    return compiled


def encoder(declaration: type[Any], version: int, compiled: Encoder) -> Encoder:
    """Give the encoder by hand where there is one, else the compiled one."""
    if declaration is FetchResponse and version >= 13:
        return _fetch_response(compiled)
    return compiled


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
    """Give the form of a whole response, frame and header included, to batches that this partition accepted.

    To be filled in are the correlation id, the batch's offset and time stamp, and the offset where the log starts.
    """
    name = topic if version >= FIRST_VERSION_BY_ID else bytes((len(topic) + 1,)) + topic
    head = b"".join((bytes((0, ONE)), name, _NO_ERROR(ONE, index)))
    pack = Struct(f">ii{len(head)}sqqq{len(_ANSWER_REST)}s").pack
    length = 4 + len(head) + 24 + len(_ANSWER_REST)

    def fill_in(correlation_id: int, base_offset: int, stamp_ms: int, log_start_offset: int) -> bytes:
        return pack(length, correlation_id, head, base_offset, stamp_ms, log_start_offset, _ANSWER_REST)

    return fill_in


_HEAD_BY_NAME: Final = Struct(
    ">BhiBB"
).unpack_from  # length of the transactional id, acks, time-out, topics, length of the name
_HEAD_OF_PARTITION: Final = Struct(">Bi").unpack_from  # partitions, index
_HEAD_BY_ID: Final = Struct(">BhiB16sBi").unpack_from  # as above, with the topic's id in between
_NO_ERROR: Final = Struct(">Bixx").pack  # partitions, index, error code
_ANSWER_REST: Final = bytes((EMPTY, NULL)) + bytes(2 + 4 + 1)
"""Record errors and message; no tags for the partition and the topic; throttle time; no tags."""


def _fetch_request(compiled: Decoder) -> Decoder:
    head = Struct(">iiibiiB16sB").unpack_from  # wait, bytes, isolation, session, topics, topic id, partitions
    rest = Struct(">iiqiqiHHB").unpack_from  # the partition, its tags and its topic's, forgotten topics and rack, tags

    def decode(buffer: memoryview, start: int) -> tuple[FetchRequest, int]:
        try:
            wait_ms, bytes_min, bytes_max, isolation, session, epoch, topics, topic_id, count = head(buffer, start)
            index, leader_epoch, offset, fetched, log_start, limit, inner_tags, lists, tags = rest(buffer, start + 39)
        except struct.error:
            return compiled(buffer, start)
        if not topics == count == ONE or inner_tags or lists != BOTH_EMPTY or tags:
            return compiled(buffer, start)
        partition = FetchPartition(
            index, leader_epoch, offset, fetched, log_start, limit, NO_UUID, HIGH_WATERMARK_UNKNOWN
        )
        asked = [FetchTopic("", uuid_of(topic_id), [partition])]
        request = FetchRequest(None, -1, None, wait_ms, bytes_min, bytes_max, isolation, session, epoch, asked, [], "")
        return request, start + 76

    return decode


def _fetch_response(compiled: Encoder) -> Encoder:
    head = Struct(">ihiB16sB").pack  # throttle time, error, session, topics, topic id, partitions
    rest = Struct(">ihqqqBiB").pack  # index, error, watermarks, aborted, preferred replica, first byte of the length

    def encode(message: FetchResponse, out: bytearray) -> list[Part]:
        if len(message.responses) != 1 or message.node_endpoints:
            return compiled(message, out)
        (topic,) = message.responses
        if len(topic.partitions) != 1:
            return compiled(message, out)
        (partition,) = topic.partitions
        records = partition.records
        if (
            records is None
            or partition.aborted_transactions
            or partition.diverging_epoch is not None
            or partition.current_leader is not None
            or partition.snapshot_id is not None
        ):
            return compiled(message, out)
        length = 1 + (records.size if isinstance(records, FileRange) else len(records))
        if length == EMPTY:
            return compiled(message, out)
        out += head(message.throttle_time_ms, message.error_code, message.session_id, ONE, topic.topic_id.bytes, ONE)
        out += rest(
            partition.partition_index,
            partition.error_code,
            partition.high_watermark,
            partition.last_stable_offset,
            partition.log_start_offset,
            NULL if partition.aborted_transactions is None else EMPTY,
            partition.preferred_read_replica,
            length if length < 128 else length & 127 | 128,
        )
        if length > 127:
            out += varint_rest(length)
        return [out, records, NO_TAGS]

    return encode
