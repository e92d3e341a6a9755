"""Produce and Fetch by hand, for the one shape that makes up nearly all traffic.

One topic, one partition, no errors, no tagged fields, a version that current clients use: then a message is one or two
structs. Whatever looks different, or wrong, is left to the compiled codec, which also finds the words for what
is wrong. So nothing is decided twice, and a test holds both codecs against each other on the same bytes.
"""

import struct
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
from riverlog.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from riverlog.wire.primitives import Decoder, Encoder, Part, long_varint, uuid_of, varint_rest
from riverlog.wire.types import NO_UUID

NULL: Final = 0
EMPTY: Final = 1
ONE: Final = 2
"""Compact counts: the wire adds one, so that 0 is null."""
FIRST_VERSION_BY_ID: Final = 13
"""From this version on topics have ids and no names, in Produce and in Fetch."""
NO_TAGS: Final = b"\0\0\0"
"""No tagged fields behind a partition, its topic and the message."""
BOTH_EMPTY: Final = EMPTY << 8 | EMPTY
"""Two neighbouring compact counts, read as one number."""


def decoder(declaration: type[Any], version: int, compiled: Decoder) -> Decoder:
    """Give the decoder by hand where there is one, else the compiled one."""
    if declaration is ProduceRequest and version >= 9:
        return _produce_request(version, compiled)
    if declaration is FetchRequest and version >= 15:
        return _fetch_request(compiled)
    return compiled


def encoder(declaration: type[Any], version: int, compiled: Encoder) -> Encoder:
    """Give the encoder by hand where there is one, else the compiled one."""
    if declaration is ProduceResponse and version >= 9:
        return _produce_response(compiled, by_name=version < FIRST_VERSION_BY_ID)
    if declaration is FetchResponse and version >= 13:
        return _fetch_response(compiled)
    return compiled


class OneBatch(NamedTuple):
    """A Produce request for one partition; the topic is its name in bytes or, from version 13, its id."""

    acks: int
    timeout_ms: int
    topic: bytes
    partition: int
    records: memoryview
    end: int


def read_one_batch(buffer: memoryview, start: int, version: int) -> OneBatch | None:
    """Read a Produce request of the common shape; None for any other, which is for the compiled codec to judge."""
    try:
        if version >= FIRST_VERSION_BY_ID:
            transactional, acks, timeout_ms, topics, topic, partitions, index, length = _BATCH_BY_ID(buffer, start)
            p = start + 30
        else:
            transactional, acks, timeout_ms, topics, name_length = _BATCH_BY_NAME(buffer, start)
            name_end = start + 8 + name_length
            topic = bytes(buffer[start + 9 : name_end])
            partitions, index, length = _BATCH_OF_PARTITION(buffer, name_end)
            if not EMPTY <= name_length < 128:
                return None
            p = name_end + 6
        if transactional or not topics == partitions == ONE:
            return None
        if length > 127:
            length, p = long_varint(buffer, p, length)
        stop = p + length - 1
        if buffer[stop] or buffer[stop + 1] or buffer[stop + 2] or not length:
            return None
    except (struct.error, IndexError):
        return None
    return OneBatch(acks, timeout_ms, topic, index, buffer[p:stop], stop + 3)


def write_one_answer(
    correlation_id: int, topic: bytes, version: int, index: int, base_offset: int, stamp_ms: int, log_start_offset: int
) -> bytes:
    """Write the whole response, frame and header included, to a batch that was accepted."""
    rest = _ANSWER_REST(ONE, index, 0, base_offset, stamp_ms, log_start_offset, EMPTY, 0)
    if version >= FIRST_VERSION_BY_ID:
        return _ANSWER_BY_ID(len(rest) + 22, correlation_id, ONE, topic) + rest
    return _ANSWER_BY_NAME(len(rest) + len(topic) + 7, correlation_id, ONE, len(topic) + 1) + topic + rest


_BATCH_BY_NAME: Final = Struct(">BhiBB").unpack_from  # transactional id, acks, time-out, topics, length of the name
_BATCH_OF_PARTITION: Final = Struct(">BiB").unpack_from  # partitions, index, first byte of the records' length
_BATCH_BY_ID: Final = Struct(">BhiB16sBiB").unpack_from  # as above, with the topic's id in between
_ANSWER_BY_NAME: Final = Struct(">iixBB").pack  # length, correlation id, no tags, topics, length of the name
_ANSWER_BY_ID: Final = Struct(">iixB16s").pack
_ANSWER_REST: Final = Struct(">BihqqqBxxxix").pack
"""Partitions, the partition's five numbers, record errors, no message, no tags; throttle time, no tags."""


def _produce_request(version: int, compiled: Decoder) -> Decoder:
    def decode(buffer: memoryview, start: int) -> tuple[ProduceRequest, int]:
        one = read_one_batch(buffer, start, version)
        if one is None:
            return compiled(buffer, start)
        part = PartitionProduceData(one.partition, one.records)
        if version >= FIRST_VERSION_BY_ID:
            topic = TopicProduceData("", uuid_of(one.topic), [part])
        else:
            topic = TopicProduceData(str(one.topic, "utf-8"), NO_UUID, [part])
        return ProduceRequest(None, one.acks, one.timeout_ms, [topic]), one.end

    return decode


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


def _produce_response(compiled: Encoder, *, by_name: bool) -> Encoder:
    def encode(message: ProduceResponse, out: bytearray) -> list[Part]:
        if len(message.responses) != 1 or message.node_endpoints:
            return compiled(message, out)
        (topic,) = message.responses
        if len(topic.partition_responses) != 1:
            return compiled(message, out)
        (partition,) = topic.partition_responses
        if partition.record_errors or partition.error_message is not None or partition.current_leader is not None:
            return compiled(message, out)
        if by_name:
            name = topic.name.encode()
            if len(name) > 126:
                return compiled(message, out)
            out.append(ONE)
            out.append(len(name) + 1)
            out += name
        else:
            out.append(ONE)
            out += topic.topic_id.bytes
        out += _ANSWER_REST(
            ONE,
            partition.index,
            partition.error_code,
            partition.base_offset,
            partition.log_append_time_ms,
            partition.log_start_offset,
            EMPTY,
            message.throttle_time_ms,
        )
        return [out]

    return encode


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
