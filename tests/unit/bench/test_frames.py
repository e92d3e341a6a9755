"""The load generator's requests are what a real client would send."""

from bench.frames import CORRELATION_POSITION, FETCH_VERSION, PRODUCE_VERSION, fetch_load, produce_load
from riverlog.records.batch import check_produced
from riverlog.records.record import read_batch
from riverlog.wire.apis import API_BY_KEY, ApiKey
from riverlog.wire.codec import decode
from riverlog.wire.framing import LENGTH, LENGTH_BYTES
from riverlog.wire.headers import decode_request_header, encode_response
from riverlog.wire.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from riverlog.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)


def test_the_request_holds_one_valid_batch_for_the_topic() -> None:
    frame = produce_load("orders", records=3, value_bytes=100, acks=1).request
    assert LENGTH.unpack_from(frame) == (len(frame) - LENGTH_BYTES,)
    header, position = decode_request_header(memoryview(frame)[LENGTH_BYTES:])
    assert header.api_key == ApiKey.PRODUCE
    request, end = decode(ProduceRequest, header.api_version, frame, LENGTH_BYTES + position)
    assert end == len(frame)
    assert request.acks == 1
    (topic,) = request.topic_data
    assert topic.name == "orders"
    (partition,) = topic.partition_data
    assert partition.records is not None
    assert check_produced(partition.records, batch_bytes_max=1_048_588).record_count == 3
    assert [len(record.value or b"") for record in read_batch(partition.records)] == [100, 100, 100]


def test_the_greeting_asks_for_versions_and_for_the_topic() -> None:
    greeting = produce_load("orders", records=1, value_bytes=100).greeting
    headers = [decode_request_header(memoryview(frame)[LENGTH_BYTES:])[0] for frame in greeting]
    assert [header.api_key for header in headers] == [ApiKey.API_VERSIONS, ApiKey.METADATA]
    assert b"orders" in greeting[1]


def test_the_error_position_points_at_the_error_code() -> None:
    load = produce_load("a-rather-long-topic-name", records=1, value_bytes=100)
    partition = PartitionProduceResponse(index=0, error_code=0x1234, base_offset=2**40)
    answer = ProduceResponse(
        responses=[TopicProduceResponse(name="a-rather-long-topic-name", partition_responses=[partition])]
    )
    parts = encode_response(API_BY_KEY[ApiKey.PRODUCE], PRODUCE_VERSION, 77, answer)
    frame = b"".join(part for part in parts if isinstance(part, bytearray | memoryview))[LENGTH_BYTES:]
    assert frame[load.error_position : load.error_position + 2] == b"\x12\x34"


def test_a_fetch_asks_for_one_batch_and_has_its_correlation_id_where_it_is_said_to_be() -> None:
    frame = bytearray(fetch_load("orders", offset=42).request)
    frame[CORRELATION_POSITION : CORRELATION_POSITION + 4] = (77).to_bytes(4, "big")
    header, position = decode_request_header(memoryview(frame)[LENGTH_BYTES:])
    assert (header.api_key, header.correlation_id) == (ApiKey.FETCH, 77)
    request, end = decode(FetchRequest, header.api_version, frame, LENGTH_BYTES + position)
    assert end == len(frame)
    ((wanted,),) = (topic.partitions for topic in request.topics)
    assert (wanted.partition, wanted.fetch_offset, wanted.partition_max_bytes) == (0, 42, 1)


def test_the_error_position_of_a_fetch_points_at_the_partition_s_error_code() -> None:
    load = fetch_load("orders", offset=0)
    partition = PartitionData(partition_index=0, error_code=0x1234, high_watermark=2**40)
    answer = FetchResponse(responses=[FetchableTopicResponse(topic="orders", partitions=[partition])])
    parts = encode_response(API_BY_KEY[ApiKey.FETCH], FETCH_VERSION, 77, answer)
    frame = b"".join(part for part in parts if isinstance(part, bytes | bytearray | memoryview))[LENGTH_BYTES:]
    assert frame[load.error_position : load.error_position + 2] == b"\x12\x34"
