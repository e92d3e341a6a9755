"""Produce and Fetch by hand, for the one shape that makes up nearly all traffic.

One topic, one partition, no errors, no tagged fields, a version that current clients use: then a message is one or two
structs. Whatever looks different, or wrong, is left to the compiled codec, which also finds the words for what
is wrong. So nothing is decided twice, and a test holds both codecs against each other on the same bytes.
"""

import struct
from struct import Struct
from typing import Any, Final

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
NO_TAGS: Final = b"\0\0\0"
"""No tagged fields behind a partition, its topic and the message."""
BOTH_EMPTY: Final = EMPTY << 8 | EMPTY
"""Two neighbouring compact counts, read as one number."""


def decoder(declaration: type[Any], version: int, compiled: Decoder) -> Decoder:
    """Give the decoder by hand where there is one, else the compiled one."""
    if declaration is ProduceRequest and version >= 9:
        return _produce_request_by_name(compiled) if version <= 12 else _produce_request_by_id(compiled)
    if declaration is FetchRequest and version >= 15:
        return _fetch_request(compiled)
    return compiled


def encoder(declaration: type[Any], version: int, compiled: Encoder) -> Encoder:
    """Give the encoder by hand where there is one, else the compiled one."""
    if declaration is ProduceResponse and version >= 9:
        return _produce_response(compiled, by_name=version <= 12)
    if declaration is FetchResponse and version >= 13:
        return _fetch_response(compiled)
    return compiled


def _produce_request_by_name(compiled: Decoder) -> Decoder:
    head = Struct(">BhiBB").unpack_from  # transactional id, acks, time-out, topics, length of the name
    rest = Struct(">BiB").unpack_from  # partitions, index, first byte of the records' length

    def decode(buffer: memoryview, start: int) -> tuple[ProduceRequest, int]:
        try:
            transactional, acks, timeout_ms, topics, name_length = head(buffer, start)
            if transactional or topics != ONE or not EMPTY <= name_length < 128:
                return compiled(buffer, start)
            name_end = start + 8 + name_length
            partitions, index, length = rest(buffer, name_end)
            if partitions != ONE:
                return compiled(buffer, start)
            p = name_end + 6
            if length > 127:
                length, p = long_varint(buffer, p, length)
            stop = p + length - 1
            tags = buffer[stop] or buffer[stop + 1] or buffer[stop + 2]
        except (struct.error, IndexError):
            return compiled(buffer, start)
        if tags or not length:
            return compiled(buffer, start)
        name = str(buffer[start + 9 : name_end], "utf-8")
        topic = TopicProduceData(name, NO_UUID, [PartitionProduceData(index, buffer[p:stop])])
        return ProduceRequest(None, acks, timeout_ms, [topic]), stop + 3

    return decode


def _produce_request_by_id(compiled: Decoder) -> Decoder:
    # transactional id, acks, time-out, topics, topic id, partitions, index, first byte of the records' length
    head = Struct(">BhiB16sBiB").unpack_from

    def decode(buffer: memoryview, start: int) -> tuple[ProduceRequest, int]:
        try:
            transactional, acks, timeout_ms, topics, topic_id, partitions, index, length = head(buffer, start)
            if transactional or not topics == partitions == ONE:
                return compiled(buffer, start)
            p = start + 30
            if length > 127:
                length, p = long_varint(buffer, p, length)
            stop = p + length - 1
            tags = buffer[stop] or buffer[stop + 1] or buffer[stop + 2]
        except (struct.error, IndexError):
            return compiled(buffer, start)
        if tags or not length:
            return compiled(buffer, start)
        topic = TopicProduceData("", uuid_of(topic_id), [PartitionProduceData(index, buffer[p:stop])])
        return ProduceRequest(None, acks, timeout_ms, [topic]), stop + 3

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
    # partitions, the partition's five numbers, record errors, no message, no tags; throttle time, no tags
    rest = Struct(">BihqqqBxxxix").pack

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
        out += rest(
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
