"""Bad bytes give MalformedMessage and cost nothing; versions decide which fields there are."""

import tracemalloc
from uuid import UUID

import pytest

from riverlog.model.ports import FileRange
from riverlog.wire.codec import MalformedMessage, decode, encode
from riverlog.wire.limits import MESSAGE_ELEMENTS_MAX, REQUEST_ELEMENTS_MAX
from riverlog.wire.messages.create_topics import CreateTopicsRequest
from riverlog.wire.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest
from riverlog.wire.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from riverlog.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from riverlog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

TOPIC_ID = UUID("12345678-1234-5678-1234-567812345678")


@pytest.mark.parametrize(
    ("version", "body"),
    [
        pytest.param(1, "7fffffff", id="2^31-1 topics"),
        pytest.param(1, "fffffffe", id="a count of -2"),
        pytest.param(0, "ffffffff", id="null where version 0 has none"),
        pytest.param(1, "00000001 0005 6162", id="a name longer than the message"),
        pytest.param(1, "00000001 ffff", id="a null name"),
        pytest.param(1, "00000001 8000", id="a negative length"),
        pytest.param(1, "00000001 0002 c328", id="not UTF-8"),
        pytest.param(1, "00000001 0003 eda080", id="a surrogate in UTF-8"),
        pytest.param(1, "000000", id="half a count"),
        pytest.param(9, "ffffffff0f", id="2^32-1 topics, compact"),
        pytest.param(9, "8080808080", id="a varint without end"),
        pytest.param(9, "02 00 00 01 01 01 00", id="a null compact name"),
        pytest.param(9, "02 03 61", id="a compact name longer than the message"),
        pytest.param(9, "01 01 01 01 01 00 7f", id="a tagged field longer than the message"),
        pytest.param(9, "01 01 01 01 ffffffff0f", id="more tagged fields than bytes"),
        pytest.param(9, "01 01 01", id="no tagged fields at the end"),
        pytest.param(9, "", id="nothing"),
    ],
)
def test_bad_bytes_are_malformed(version: int, body: str) -> None:
    with pytest.raises(MalformedMessage, match=f"MetadataRequest version {version}"):
        decode(MetadataRequest, version, bytes.fromhex(body.replace(" ", "")))


@pytest.mark.parametrize(
    ("declaration", "version", "body"),
    [
        (MetadataRequest, 1, "7fffffff" + "00" * 11),
        (MetadataRequest, 12, "ffffffff07" + "00" * 10),
        (CreateTopicsRequest, 2, "00000001 0001 61 00000001 0001 7fffffff".replace(" ", "")),
        (MetadataResponse, 12, "00000000 ffffffff07".replace(" ", "")),
    ],
)
def test_a_short_request_that_claims_2_to_the_31_elements_costs_nothing(
    declaration: type[object], version: int, body: str
) -> None:
    raw = bytes.fromhex(body)
    with pytest.raises(MalformedMessage):
        decode(declaration, version, raw)  # compiled now, so that only the reading is measured
    tracemalloc.start()
    try:
        with pytest.raises(MalformedMessage):
            decode(declaration, version, raw)
        assert tracemalloc.get_traced_memory()[1] < 10_000
    finally:
        tracemalloc.stop()


def test_elements_are_bounded_over_the_whole_message() -> None:
    names = REQUEST_ELEMENTS_MAX + 1
    with pytest.raises(MalformedMessage, match="the limit is 200000"):
        decode(MetadataRequest, 1, names.to_bytes(4) + bytes(2 * names))
    brokers = MESSAGE_ELEMENTS_MAX + 1
    with pytest.raises(MalformedMessage, match="the limit is 1000000"):
        decode(MetadataResponse, 0, brokers.to_bytes(4) + bytes(10 * brokers))


def test_numbers_in_a_request_count_too() -> None:
    def asked(*counts: int) -> bytes:
        topics = [OffsetFetchRequestTopic("orders", partition_indexes=[0] * count) for count in counts]
        return encode(OffsetFetchRequest(group_id="g", topics=topics), 5)

    assert decode(OffsetFetchRequest, 5, asked(REQUEST_ELEMENTS_MAX - 1))
    with pytest.raises(MalformedMessage, match="the limit is 200000"):
        decode(OffsetFetchRequest, 5, asked(REQUEST_ELEMENTS_MAX // 2, REQUEST_ELEMENTS_MAX // 2))


def test_bytes_behind_a_message_are_left_to_the_caller() -> None:
    encoded = encode(MetadataRequest(), 9)
    assert decode(MetadataRequest, 9, b"--" + encoded + b"trailing", 2) == (MetadataRequest(), 2 + len(encoded))


def test_unknown_tagged_fields_are_skipped_at_every_level() -> None:
    known = FetchRequest(topics=[FetchTopic(topic_id=TOPIC_ID)], replica_state=ReplicaState(1, 2))
    encoded = encode(known, 15)
    state = bytes.fromhex("0d 00000001 0000000000000002 00".replace(" ", ""))
    assert encoded.endswith(b"\x01\x01" + state)
    unknown = bytes.fromhex("09 03 616263".replace(" ", ""))
    with_unknown = (
        encoded[: -len(state) - 2].removesuffix(b"\0\1\1")  # the topic's tags, forgotten topics, rack
        + (b"\1" + unknown + b"\1\1")
        + (b"\2" + b"\1" + bytes([len(state) - 1 + len(unknown)]) + state[1:-1] + b"\1" + unknown + unknown)
    )
    assert decode(FetchRequest, 15, with_unknown) == (known, len(with_unknown))


def test_a_tagged_field_that_is_not_as_long_as_it_claims_is_malformed() -> None:
    good = encode(FetchRequest(cluster_id="abc"), 12)
    bad = good.replace(b"\x01\x00\x04\x04abc", b"\x01\x00\x05\x04abc") + b"\0"
    assert bad != good + b"\0"
    with pytest.raises(MalformedMessage, match="cluster_id"):
        decode(FetchRequest, 12, bad)


def test_fields_that_a_version_does_not_have_are_left_out_and_come_back_as_defaults() -> None:
    request = MetadataRequest([MetadataRequestTopic(TOPIC_ID, "orders")], allow_auto_topic_creation=False)
    old, _ = decode(MetadataRequest, 3, encode(request, 3))
    assert old == MetadataRequest([MetadataRequestTopic(name="orders")], allow_auto_topic_creation=True)


def test_topic_ids_replace_names_from_fetch_13_produce_13_and_join_them_in_metadata_10() -> None:
    both = FetchRequest(topics=[FetchTopic("orders", TOPIC_ID)])
    assert decode(FetchRequest, 12, encode(both, 12))[0].topics == [FetchTopic("orders")]
    assert decode(FetchRequest, 13, encode(both, 13))[0].topics == [FetchTopic(topic_id=TOPIC_ID)]
    sent = ProduceRequest(topic_data=[TopicProduceData("orders", TOPIC_ID)])
    assert decode(ProduceRequest, 12, encode(sent, 12))[0].topic_data == [TopicProduceData("orders")]
    assert decode(ProduceRequest, 13, encode(sent, 13))[0].topic_data == [TopicProduceData(topic_id=TOPIC_ID)]
    asked = MetadataRequest([MetadataRequestTopic(TOPIC_ID, "orders")])
    assert decode(MetadataRequest, 10, encode(asked, 10))[0] == asked


def test_a_nullable_struct_is_there_or_not() -> None:
    for cursor in (None, Cursor("orders", 3)):
        request = DescribeTopicPartitionsRequest(cursor=cursor)
        assert decode(DescribeTopicPartitionsRequest, 0, encode(request, 0))[0] == request


def test_a_tagged_struct_of_defaults_is_left_out_as_in_kafka() -> None:
    spelled_out = FetchResponse(
        responses=[FetchableTopicResponse(partitions=[PartitionData(diverging_epoch=EpochEndOffset())])]
    )
    left_out = FetchResponse(responses=[FetchableTopicResponse(partitions=[PartitionData()])])
    assert encode(spelled_out, 12) == encode(left_out, 12)


@pytest.mark.parametrize("version", range(3, 14))
def test_records_are_a_writable_view_of_the_frame(version: int) -> None:
    request = ProduceRequest(
        topic_data=[TopicProduceData("t", TOPIC_ID, [PartitionProduceData(0, memoryview(b"abc"))])]
    )
    frame = bytearray(encode(request, version))
    decoded, _ = decode(ProduceRequest, version, memoryview(frame))
    view = decoded.topic_data[0].partition_data[0].records
    assert view is not None
    view[0:1] = b"X"
    assert frame.count(b"Xbc") == 1


@pytest.mark.parametrize("version", [11, 16])
def test_records_in_a_file_can_not_be_joined(version: int) -> None:
    in_file = FileRange(None, 0, 5)  # type: ignore[arg-type]
    response = FetchResponse(responses=[FetchableTopicResponse(partitions=[PartitionData(records=in_file)])])
    with pytest.raises(AssertionError, match="in a file"):
        encode(response, version)


@pytest.mark.parametrize("version", [-1, 2, 14])
def test_a_version_that_is_not_spoken_is_our_own_mistake(version: int) -> None:
    with pytest.raises(AssertionError, match="is not spoken in version"):
        decode(ProduceRequest, version, b"")
    with pytest.raises(AssertionError, match="is not spoken in version"):
        encode(ProduceRequest(), version)
