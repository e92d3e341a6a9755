"""Requests for the load generator, written once and replayed many times."""

import time
from random import Random
from typing import Final

from bench.loadgen import Load
from riverlog.records.record import BatchBuilder
from riverlog.wire.apis import API_BY_KEY, ApiKey
from riverlog.wire.headers import encode_request, encode_response
from riverlog.wire.messages.api_versions import ApiVersionsRequest
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
ALL: Final = -1
TIMEOUT_MS: Final = 30_000


def produce_load(topic: str, *, records: int, value_bytes: int, acks: int = ALL, partitions: int = 1) -> Load:
    """Greet with ApiVersions and Metadata, then produce a batch of random values into each partition over and over."""
    greeting = [
        encode_request(API_BY_KEY[ApiKey.API_VERSIONS], API_VERSIONS_VERSION, 0, CLIENT_ID, ApiVersionsRequest()),
        encode_request(
            API_BY_KEY[ApiKey.METADATA],
            METADATA_VERSION,
            0,
            CLIENT_ID,
            MetadataRequest(topics=[MetadataRequestTopic(name=topic)]),
        ),
    ]
    batch = memoryview(_batch(records, value_bytes))
    data = [PartitionProduceData(index=index, records=batch) for index in range(partitions)]
    request = ProduceRequest(
        acks=acks, timeout_ms=TIMEOUT_MS, topic_data=[TopicProduceData(name=topic, partition_data=data)]
    )
    return Load(
        greeting,
        encode_request(API_BY_KEY[ApiKey.PRODUCE], PRODUCE_VERSION, 0, CLIENT_ID, request),
        error_position=_error_position(topic, partitions),
    )


def _batch(records: int, value_bytes: int) -> bytearray:
    random = Random(value_bytes)
    builder = BatchBuilder()
    now_ms = round(time.time() * 1000)
    for _ in range(records):
        builder.append(None, random.randbytes(value_bytes), timestamp_ms=now_ms)
    return builder.build()


def _error_position(topic: str, partitions: int) -> int:
    """Find the first error code in an answer, counted from behind its length: where refusal and success part."""
    success, refusal = (_answer(topic, partitions, code) for code in (0, -1))
    return next(position for position in range(len(success)) if success[position] != refusal[position]) - 4


def _answer(topic: str, partitions: int, error_code: int) -> bytes:
    answers = [PartitionProduceResponse(index=index, error_code=error_code) for index in range(partitions)]
    message = ProduceResponse(responses=[TopicProduceResponse(name=topic, partition_responses=answers)])
    parts = encode_response(API_BY_KEY[ApiKey.PRODUCE], PRODUCE_VERSION, 0, message)
    return b"".join(part for part in parts if isinstance(part, bytes | bytearray | memoryview))
