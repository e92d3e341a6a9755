"""Facts about groups as bytes: Kafka's own, byte for byte."""

from uuid import UUID

import pytest

from riverlog.groups.encoding import BadRecord, decode_record, encode_key, encode_value
from riverlog.groups.records import (
    RECORD_TYPES,
    GroupMetadataKey,
    GroupMetadataValue,
    GroupRecord,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from riverlog.model.ids import ProducerEpoch, ProducerId
from riverlog.wire.codec import encode

KEY = OffsetCommitKey(group="g", topic="orders", partition=3)
KEY_BYTES = bytes.fromhex("0001 0001 67 0006 6f7264657273 00000003")
MEMBER = MemberMetadata(
    member_id="m-1",
    group_instance_id="i",
    client_id="c",
    client_host="/127.0.0.1",
    rebalance_timeout=60_000,
    session_timeout=10_000,
    subscription=b"\x00\x01",
    assignment=b"\x02",
)
GROUP = GroupMetadataValue(
    protocol_type="consumer", generation=7, protocol="range", leader="m-1", current_state_timestamp=5, members=(MEMBER,)
)


def test_an_offset_is_written_as_kafka_writes_it() -> None:
    value = OffsetCommitValue(offset=42, leader_epoch=5, metadata="note", commit_timestamp=1, topic_id=UUID(int=1))
    assert encode_key(KEY) == KEY_BYTES
    assert encode_value(value) == bytes.fromhex(
        "0004 000000000000002a 00000005 05 6e6f7465 0000000000000001 01 00 10 00000000000000000000000000000001"
    )
    assert decode_record(encode_key(KEY), encode_value(value)) == GroupRecord(KEY, value)


@pytest.mark.parametrize("metadata", ["", "x" * 126, "x" * 127, "ä" * 63, "ä" * 64, "x" * 5000])
@pytest.mark.parametrize("topic_id", [UUID(int=0), UUID(int=1), UUID(int=(1 << 128) - 1)])
@pytest.mark.parametrize("name", ["", "g", "ä" * 300])
def test_an_offset_is_written_as_the_wire_writes_it(metadata: str, topic_id: UUID, name: str) -> None:
    key = OffsetCommitKey(group=name, topic=f"of-{name}", partition=(1 << 31) - 1)
    value = OffsetCommitValue(
        offset=(1 << 63) - 1, leader_epoch=-1, metadata=metadata, commit_timestamp=1 << 40, topic_id=topic_id
    )
    assert encode_key(key) == b"\x00\x01" + encode(key, 0)
    assert encode_value(value) == b"\x00\x04" + encode(value, 4)


def test_an_offset_that_expires_is_written_in_the_version_that_can_say_so() -> None:
    value = OffsetCommitValue(offset=42, metadata="", commit_timestamp=1, expire_timestamp=9)
    assert encode_value(value) == bytes.fromhex("0001 000000000000002a 0000 0000000000000001 0000000000000009")
    assert decode_record(KEY_BYTES, encode_value(value)) == GroupRecord(KEY, value)


def test_a_group_is_written_as_kafka_writes_it() -> None:
    assert encode_key(GroupMetadataKey("g")) == bytes.fromhex("0002 0001 67")
    assert encode_value(GROUP) == bytes.fromhex(
        "0003 0008 636f6e73756d6572 00000007 0005 72616e6765 0003 6d2d31 0000000000000005 00000001"
        "0003 6d2d31 0001 69 0001 63 000a 2f3132372e302e302e31 0000ea60 00002710 00000002 0001 00000001 02"
    )
    assert decode_record(encode_key(GroupMetadataKey("g")), encode_value(GROUP)) == GroupRecord(
        GroupMetadataKey("g"), GROUP
    )


def test_records_of_older_kafkas_are_understood() -> None:
    legacy = decode_record(
        bytes.fromhex("0000") + KEY_BYTES[2:], bytes.fromhex("0000 0000000000000007 0000" + "00" * 8)
    )
    assert legacy == GroupRecord(KEY, OffsetCommitValue(offset=7))
    group = decode_record(
        bytes.fromhex("0002 0001 67"), bytes.fromhex("0000 0008 636f6e73756d6572 00000007 ffff ffff 00000000")
    )
    assert group == GroupRecord(GroupMetadataKey("g"), GroupMetadataValue(protocol_type="consumer", generation=7))


def test_a_tombstone_has_a_key_alone() -> None:
    assert decode_record(KEY_BYTES, None) == GroupRecord(KEY, None)


def test_the_producer_of_a_transaction_comes_from_the_batch() -> None:
    record = decode_record(KEY_BYTES, None, ProducerId(7), ProducerEpoch(2))
    assert record is not None
    assert (record.producer_id, record.producer_epoch) == (7, 2)


def test_a_kind_that_nobody_knows_is_passed_over() -> None:
    assert max(kind.number for kind in RECORD_TYPES) < 99
    assert decode_record(bytes.fromhex("0063 ffff"), b"anything") is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"", None),
        (b"\x00", None),
        (KEY_BYTES[:-1], None),
        (KEY_BYTES + b"\x00", None),
        (KEY_BYTES, b""),
        (KEY_BYTES, b"\x00\x63"),
        (KEY_BYTES, b"\xff\xff"),
        (KEY_BYTES, encode_value(OffsetCommitValue())[:-1]),
        (KEY_BYTES, encode_value(OffsetCommitValue()) + b"\x00"),
    ],
)
def test_bytes_that_are_no_record_are_refused_with_a_sentence(key: bytes, value: bytes | None) -> None:
    with pytest.raises(BadRecord, match=r"\w+ \w+"):
        decode_record(key, value)
