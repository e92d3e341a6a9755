"""Requests for the load generator, written once and replayed many times."""

import time
from collections.abc import Iterable
from random import Random
from typing import Final

from bench.loadgen import Load
from riverlog.records.record import BatchBuilder
from riverlog.wire.apis import API_BY_KEY, ApiKey
from riverlog.wire.headers import encode_request, encode_response
from riverlog.wire.messages.api_versions import ApiVersionsRequest
from riverlog.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from riverlog.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

CLIENT_ID: Final = "bench"
API_VERSIONS_VERSION: Final = 0
METADATA_VERSION: Final = 1
PRODUCE_VERSION: Final = 9
"""The first with tagged fields, and old enough to name topics, so that a frame can be written before the topic is."""
FETCH_VERSION: Final = 12
"""The last that names topics."""
CORRELATION_POSITION: Final = 8
"""Where a frame holds its correlation id: behind its length, API key and version."""
ALL: Final = -1
TIMEOUT_MS: Final = 30_000


def produce_load(topic: str, *, records: int, value_bytes: int, acks: int = ALL, partitions: int = 1) -> Load:
    """Greet with ApiVersions and Metadata, then produce a batch of random values into each partition over and over."""
    return batch_load(topic, _batch(records, value_bytes), acks=acks, partitions=partitions)


def batch_load(topic: str, records: bytearray, *, acks: int = ALL, partitions: int = 1) -> Load:
    """Greet as before, then produce this batch into each partition over and over."""
    batch = memoryview(records)
    data = [PartitionProduceData(index=index, records=batch) for index in range(partitions)]
    request = ProduceRequest(
        acks=acks, timeout_ms=TIMEOUT_MS, topic_data=[TopicProduceData(name=topic, partition_data=data)]
    )
    return Load(
        greeting(topic),
        encode_request(API_BY_KEY[ApiKey.PRODUCE], PRODUCE_VERSION, 0, CLIENT_ID, request),
        error_position=_error_position(_produced(topic, partitions, 0), _produced(topic, partitions, -1)),
    )


def fetch_load(topic: str, *, offset: int) -> Load:
    """Greet as before, then fetch one batch of partition 0 over and over: the one that holds `offset`."""
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1)
    request = FetchRequest(
        max_wait_ms=TIMEOUT_MS, min_bytes=1, max_bytes=1, topics=[FetchTopic(topic=topic, partitions=[wanted])]
    )
    return Load(
        greeting(topic),
        encode_request(API_BY_KEY[ApiKey.FETCH], FETCH_VERSION, 0, CLIENT_ID, request),
        error_position=_error_position(_fetched(topic, 0), _fetched(topic, -1)),
    )


def greeting(topic: str) -> list[bytes]:
    """Ask for versions and for the topic, as every client does."""
    return [
        encode_request(API_BY_KEY[ApiKey.API_VERSIONS], API_VERSIONS_VERSION, 0, CLIENT_ID, ApiVersionsRequest()),
        encode_request(
            API_BY_KEY[ApiKey.METADATA],
            METADATA_VERSION,
            0,
            CLIENT_ID,
            MetadataRequest(topics=[MetadataRequestTopic(name=topic)]),
        ),
    ]


def _batch(records: int, value_bytes: int) -> bytearray:
    random = Random(value_bytes)
    builder = BatchBuilder()
    now_ms = round(time.time() * 1000)
    for _ in range(records):
        builder.append(None, random.randbytes(value_bytes), timestamp_ms=now_ms)
    return builder.build()


def _error_position(success: bytes, refusal: bytes) -> int:
    """Find the first error code in an answer, counted from behind its length: where refusal and success part."""
    return next(position for position in range(len(success)) if success[position] != refusal[position]) - 4


def _produced(topic: str, partitions: int, error_code: int) -> bytes:
    answers = [PartitionProduceResponse(index=index, error_code=error_code) for index in range(partitions)]
    message = ProduceResponse(responses=[TopicProduceResponse(name=topic, partition_responses=answers)])
    return _joined(encode_response(API_BY_KEY[ApiKey.PRODUCE], PRODUCE_VERSION, 0, message))


def _fetched(topic: str, error_code: int) -> bytes:
    partition = PartitionData(partition_index=0, error_code=error_code)
    message = FetchResponse(responses=[FetchableTopicResponse(topic=topic, partitions=[partition])])
    return _joined(encode_response(API_BY_KEY[ApiKey.FETCH], FETCH_VERSION, 0, message))


def _joined(parts: Iterable[object]) -> bytes:
    return b"".join(part for part in parts if isinstance(part, bytes | bytearray | memoryview))
