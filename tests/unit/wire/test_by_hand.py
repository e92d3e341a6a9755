"""What is done by hand gives the same as the compiled codec, on usual and unusual messages, good and bad bytes."""

import struct
from typing import Any
from uuid import UUID

import pytest

from riverlog.model.ports import FileRange
from riverlog.wire import by_hand
from riverlog.wire.apis import API_BY_KEY, ApiKey
from riverlog.wire.codec import MalformedMessage, encode
from riverlog.wire.decoding import compile_decoder
from riverlog.wire.encoding import compile_encoder
from riverlog.wire.headers import encode_response
from riverlog.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    NodeEndpoint,
    PartitionData,
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


def read(**fields: Any) -> FetchResponse:
    partition = PartitionData(**{"partition_index": 3, "high_watermark": 9, "records": BATCH, **fields})
    return FetchResponse(session_id=1, responses=[FetchableTopicResponse("orders", TOPIC_ID, [partition])])


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
    asked(rack_id="eu"),
    asked(rack_id=LONG),
    asked(cluster_id="c"),
    asked(topics=[]),
    asked(topics=[FetchTopic("a", TOPIC_ID)]),
    asked(topics=[FetchTopic("a", TOPIC_ID, [FetchPartition(), FetchPartition(1, high_watermark=4)])]),
    asked(topics=[FetchTopic("a", TOPIC_ID, [FetchPartition(1, high_watermark=4)])]),
    FetchRequest(),
]
FETCH_RESPONSES = [
    read(),
    read(records=BATCH[:126]),
    read(records=BATCH[:127]),
    read(records=b""),
    read(records=None),
    read(records=FileRange(None, 0, 70_000)),  # type: ignore[arg-type]
    read(aborted_transactions=[]),
    read(aborted_transactions=[AbortedTransaction(1, 2)]),
    read(diverging_epoch=EpochEndOffset(1, 2)),
    read(error_code=1, preferred_read_replica=2),
    FetchResponse(),
    FetchResponse(responses=[FetchableTopicResponse("a", TOPIC_ID, [PartitionData(), PartitionData(1)])]),
    FetchResponse(responses=[FetchableTopicResponse("a", TOPIC_ID, [PartitionData(records=BATCH)])] * 2),
    FetchResponse(responses=[FetchableTopicResponse()], node_endpoints=[NodeEndpoint(1, "h", 2)]),
]


def outcome(decoder: Any, raw: bytes) -> Any:
    try:
        return decoder(memoryview(raw), 0)
    except (MalformedMessage, struct.error, IndexError, UnicodeDecodeError) as error:
        return type(error)


@pytest.mark.parametrize(
    ("declaration", "version", "messages"),
    [(FetchRequest, version, FETCH_REQUESTS) for version in range(15, 19)],
)
def test_decoding_by_hand_agrees_with_the_compiled_decoder(
    declaration: type[Any], version: int, messages: list[Any]
) -> None:
    compiled = compile_decoder(declaration, version)
    taken = []

    def watched(buffer: memoryview, position: int) -> tuple[Any, int]:
        taken.append(position)
        return compiled(buffer, position)

    decoder = by_hand.decoder(declaration, version, watched)
    assert decoder is not watched
    for message in messages:
        encoded = encode(message, version)
        assert decoder(memoryview(b"--" + encoded), 2) == compiled(memoryview(b"--" + encoded), 2)
        for cut in range(0, len(encoded), 1 if len(encoded) < 400 else 997):
            assert outcome(decoder, encoded[:cut]) == outcome(compiled, encoded[:cut])
        for place in range(min(len(encoded), 120)):
            changed = bytearray(encoded)
            changed[place] ^= 0x81
            assert outcome(decoder, bytes(changed)) == outcome(compiled, bytes(changed))
    taken.clear()
    decoder(memoryview(encode(messages[0], version)), 0)
    assert taken == [], "the usual shape must not need the compiled decoder"


@pytest.mark.parametrize(
    ("declaration", "version", "messages"),
    [(FetchResponse, version, FETCH_RESPONSES) for version in range(13, 19)],
)
def test_encoding_by_hand_agrees_with_the_compiled_encoder(
    declaration: type[Any], version: int, messages: list[Any]
) -> None:
    compiled = compile_encoder(declaration, version)
    taken = []

    def watched(message: Any, out: bytearray) -> Any:
        taken.append(message)
        return compiled(message, out)

    encoder = by_hand.encoder(declaration, version, watched)
    assert encoder is not watched
    for message in messages:
        out = bytearray(b"head")
        parts = encoder(message, out)
        assert parts[0] is out
        assert parts == compiled(message, bytearray(b"head"))
    taken.clear()
    encoder(messages[0], bytearray())
    assert taken == [], "the usual shape must not need the compiled encoder"


def read_whole(raw: bytes, version: int) -> ProduceRequest | None:
    """Read a Produce request in two steps, as the broker does; None where it is left to the compiled decoder."""
    buffer = memoryview(raw)
    head = by_hand.read_one_head(buffer, 0, version)
    records = by_hand.read_last_batch(buffer, head.end) if head is not None else None
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
    fill_in = by_hand.one_answer(name.encode() if version < 13 else TOPIC_ID.bytes, version, 3)
    partition = PartitionProduceResponse(index=3, base_offset=77, log_append_time_ms=1_000, log_start_offset=5)
    message = ProduceResponse([TopicProduceResponse(name, TOPIC_ID, [partition])])
    (expected,) = encode_response(API_BY_KEY[ApiKey.PRODUCE], version, 9, message)
    assert fill_in(9, 77, 1_000, 5) == expected


def test_other_versions_and_messages_are_left_to_the_compiled_codec() -> None:
    def compiled(*_: Any) -> Any:
        raise AssertionError

    assert by_hand.decoder(FetchRequest, 14, compiled) is compiled
    assert by_hand.decoder(ProduceResponse, 13, compiled) is compiled
    assert by_hand.encoder(ProduceResponse, 13, compiled) is compiled
    assert by_hand.encoder(FetchResponse, 12, compiled) is compiled
    assert by_hand.encoder(FetchRequest, 18, compiled) is compiled
