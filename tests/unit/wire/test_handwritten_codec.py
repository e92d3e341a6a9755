"""What is done by hand gives the same as the compiled codec, on usual and unusual messages, good and bad bytes."""

import struct
from typing import Any
from uuid import UUID

import pytest

from riverlog.model.ports import FileRange
from riverlog.wire import handwritten_codec
from riverlog.wire.apis import API_BY_KEY, ApiKey
from riverlog.wire.codec import MalformedMessage, encode
from riverlog.wire.decoding import compile_decoder
from riverlog.wire.headers import encode_response
from riverlog.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from riverlog.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

TOPIC_ID = UUID(int=0xABCDEF)
BATCH = memoryview(bytes(range(256)) * 80)
LONG = "n" * 200
NO_ID = UUID(int=0)


def asked(**fields: Any) -> FetchRequest:
    partition = FetchPartition(3, 7, 1234, 5, 6, 1 << 20)
    return FetchRequest(
        **{"max_wait_ms": 500, "min_bytes": 1, "topics": [FetchTopic("orders", TOPIC_ID, [partition])], **fields}
    )


def sent(
    name: str = "orders", *, records: memoryview | None = BATCH, partitions: int = 1, **fields: Any
) -> ProduceRequest:
    data = [PartitionProduceData(index, records) for index in range(partitions)]
    return ProduceRequest(
        **{"acks": -1, "timeout_ms": 9, "topic_data": [TopicProduceData(name, TOPIC_ID, data)], **fields}
    )


PRODUCE_REQUESTS = [
    sent(),
    sent(records=BATCH[:5]),
    sent(records=BATCH[:126]),
    sent(records=BATCH[:127]),
    sent(records=BATCH[:0]),
    sent(records=None),
    sent(name=""),
    sent(name="ö" * 63),
    sent(name=LONG),
    sent(partitions=0),
    sent(partitions=2),
    sent(transactional_id="t"),
    sent(transactional_id=""),
    sent(transactional_id="漢" * 40),
    sent(name="漢" * 60),
    ProduceRequest(),
]
FETCH_REQUESTS = [
    asked(),
    asked(topics=[FetchTopic(LONG, TOPIC_ID, [FetchPartition()])]),
    asked(topics=[FetchTopic("", TOPIC_ID, [FetchPartition()])]),
    asked(replica_id=2, replica_state=ReplicaState(2, 3)),
    asked(rack_id="eu"),
    asked(rack_id=LONG),
    asked(cluster_id="c"),
    asked(topics=[]),
    asked(topics=[FetchTopic("a", TOPIC_ID)]),
    asked(topics=[FetchTopic("a", TOPIC_ID, [FetchPartition(), FetchPartition(1, high_watermark=4)])]),
    asked(topics=[FetchTopic("a", TOPIC_ID, [FetchPartition(1, high_watermark=4)])]),
    FetchRequest(),
]


def outcome(decoder: Any, raw: bytes) -> Any:
    try:
        return decoder(memoryview(raw), 0)
    except (MalformedMessage, struct.error, IndexError, UnicodeDecodeError) as error:
        return type(error)


def read_fetch(raw: bytes, version: int) -> FetchRequest | None:
    """Read a Fetch request in two steps, as the broker does; None where it is left to the compiled decoder."""
    buffer = memoryview(raw)
    head = handwritten_codec.read_one_fetch(buffer, 0, version)
    rest = handwritten_codec.read_fetch_end(buffer, head.end) if head is not None else None
    if head is None or rest is None:
        return None
    name, topic_id = (str(head.topic, "utf-8"), NO_ID) if version < 13 else ("", UUID(bytes=head.topic))
    partition = FetchPartition(head.partition, head.leader_epoch, rest[0], partition_max_bytes=rest[1])
    return FetchRequest(
        max_wait_ms=head.wait_ms,
        min_bytes=head.bytes_min,
        max_bytes=head.bytes_max,
        isolation_level=head.isolation_level,
        session_epoch=head.session_epoch,
        topics=[FetchTopic(name, topic_id, [partition])],
    )


def for_consumers(decoded: Any) -> Any:
    """Leave out what only followers and sessions fill in, and what no answer depends on."""
    if isinstance(decoded, type):
        return decoded
    request, _ = decoded
    request.session_id = 0
    for topic in request.topics:
        for partition in topic.partitions:
            partition.last_fetched_epoch = partition.log_start_offset = -1
    return request


@pytest.mark.parametrize("version", range(12, 19))
def test_what_is_read_by_hand_of_a_fetch_request_is_what_the_compiled_decoder_reads(version: int) -> None:
    compiled = compile_decoder(FetchRequest, version)

    def check(raw: bytes) -> bool:
        try:
            found = read_fetch(raw, version)
        except UnicodeDecodeError as error:
            return outcome(compiled, raw) in (type(error), MalformedMessage)
        return found is None or for_consumers(outcome(compiled, raw)) == found

    assert read_fetch(encode(asked(), version), version) is not None
    for message in FETCH_REQUESTS:
        encoded = encode(message, version)
        assert check(encoded)
        assert all(check(encoded[:cut]) for cut in range(len(encoded)))
        for place in range(min(len(encoded), 120)):
            changed = bytearray(encoded)
            changed[place] ^= 0x81
            assert check(bytes(changed))


@pytest.mark.parametrize("version", range(12, 19))
@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize(
    "records", [b"", bytes(BATCH[:126]), bytes(BATCH[:127]), bytes(BATCH), FileRange(None, 0, 70_000)]
)
def test_a_fetched_answer_filled_in_is_what_the_compiled_encoder_writes(
    version: int, committed: bool, records: Any
) -> None:
    topic = TOPIC_ID.bytes if version > 12 else b"orders"
    fill_in = handwritten_codec.one_fetched(topic, version, 3, committed=committed)
    partition = PartitionData(
        partition_index=3,
        high_watermark=9,
        last_stable_offset=8,
        log_start_offset=2,
        aborted_transactions=[] if committed else None,
        records=records,
    )
    message = FetchResponse(responses=[FetchableTopicResponse("orders", TOPIC_ID, [partition])])
    expected = encode_response(API_BY_KEY[ApiKey.FETCH], version, 77, message)
    filled = fill_in(77, 9, 8, 2, records)
    if isinstance(records, FileRange) or len(records) > 512:
        assert filled == expected
    else:
        assert filled == [b"".join(expected)]  # type: ignore[arg-type]  # none of them is a range of a file


def read_whole(raw: bytes, version: int) -> ProduceRequest | None:
    """Read a Produce request in two steps, as the broker does; None where it is left to the compiled decoder."""
    buffer = memoryview(raw)
    head = handwritten_codec.read_one_head(buffer, 0, version)
    records = handwritten_codec.read_last_batch(buffer, head.end) if head is not None else None
    if head is None or records is None:
        return None
    name, topic_id = str(head.topic, "utf-8") if version < 13 else "", UUID(bytes=head.topic) if version > 12 else None
    topic = TopicProduceData(name, topic_id or UUID(int=0), [PartitionProduceData(head.partition, records)])
    transactional_id = None if head.transactional_id is None else str(head.transactional_id, "utf-8")
    return ProduceRequest(transactional_id, head.acks, head.timeout_ms, [topic])


@pytest.mark.parametrize("version", range(9, 14))
def test_what_is_read_by_hand_of_a_produce_request_is_what_the_compiled_decoder_reads(version: int) -> None:
    compiled = compile_decoder(ProduceRequest, version)

    def check(raw: bytes) -> bool:
        try:
            found = read_whole(raw, version)
        except (MalformedMessage, UnicodeDecodeError) as error:
            return outcome(compiled, raw) in (type(error), MalformedMessage)
        return found is None or outcome(compiled, raw)[0] == found

    assert read_whole(encode(sent(), version), version) is not None
    for message in PRODUCE_REQUESTS:
        encoded = encode(message, version)
        assert check(encoded)
        assert all(check(encoded[:cut]) for cut in range(0, len(encoded), 1 if len(encoded) < 400 else 997))
        for place in range(min(len(encoded), 120)):
            changed = bytearray(encoded)
            changed[place] ^= 0x81
            assert check(bytes(changed))


@pytest.mark.parametrize("version", range(9, 14))
@pytest.mark.parametrize("name", ["orders", "o" * 15, "ö" * 63])
def test_an_answer_filled_in_is_what_the_compiled_encoder_writes(version: int, name: str) -> None:
    fill_in = handwritten_codec.one_answer(name.encode() if version < 13 else TOPIC_ID.bytes, version, 3)
    partition = PartitionProduceResponse(index=3, base_offset=77, log_append_time_ms=1_000, log_start_offset=5)
    message = ProduceResponse([TopicProduceResponse(name, TOPIC_ID, [partition])])
    (expected,) = encode_response(API_BY_KEY[ApiKey.PRODUCE], version, 9, message)
    assert fill_in(9, 77, 1_000, 5) == expected
