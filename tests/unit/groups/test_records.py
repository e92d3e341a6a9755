"""The kinds of facts, against the table of Kafka 4.3."""

from uuid import UUID

import pytest

from riverlog.groups.encoding import decode_record, encode_key, encode_value
from riverlog.groups.records import (
    RECORD_TYPES,
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    ConsumerGroupValue,
    CurrentTopicPartitions,
    GroupRecord,
    TargetTopicPartitions,
    TransactionMarker,
    are_asked_again,
)
from riverlog.model.ids import ProducerEpoch, ProducerId
from riverlog.wire.types import fields_of

TOPIC = UUID(int=1)


def test_only_what_is_to_be_forgotten_is_said_once() -> None:
    said = GroupRecord(ConsumerGroupMetadataKey("g"), ConsumerGroupMetadataValue(1))
    forgotten = GroupRecord(ConsumerGroupMetadataKey("g"), None)
    ended = TransactionMarker(ProducerId(1), ProducerEpoch(0), True, 0)
    assert are_asked_again([said, ended])
    assert not are_asked_again([said, forgotten])


def test_every_kind_has_one_number() -> None:
    numbers = [kind.number for kind in RECORD_TYPES]
    assert len(set(numbers)) == len(numbers)


def test_every_kind_is_written_in_a_version_that_is_understood() -> None:
    for kind in RECORD_TYPES:
        assert kind.version <= kind.latest


def test_keys_have_no_versions() -> None:
    for kind in RECORD_TYPES:
        assert all(field.wire.since == 0 for field in fields_of(kind.key))


@pytest.mark.parametrize(
    ("key", "value", "key_written", "value_written"),
    [
        (
            ConsumerGroupMetadataKey("g"),
            ConsumerGroupMetadataValue(3, -7),
            "0003 0001 67",
            "0000 00000003 01 00 08 fffffffffffffff9",
        ),
        (
            ConsumerGroupMemberMetadataKey("g", "m"),
            ConsumerGroupMemberMetadataValue("i", None, "c", "/h", ("orders",), "p.*", 1000, "range"),
            "0005 0001 67 0001 6d",
            "0000 02 69 00 02 63 03 2f68 02 07 6f7264657273 04 702e2a 000003e8 06 72616e6765 01 00 01 00",
        ),
        (
            ConsumerGroupMemberMetadataKey("g", "m"),
            ConsumerGroupMemberMetadataValue(
                client_id="c",
                client_host="/h",
                classic_member_metadata=ClassicMemberMetadata(6000, (ClassicProtocol("range", b"\x00\x01"),)),
            ),
            "0005 0001 67 0001 6d",
            "0000 00 00 02 63 03 2f68 01 00 ffffffff 00 01 00 11 01 00001770 02 06 72616e6765 03 0001 00 00",
        ),
        (
            ConsumerGroupTargetAssignmentMetadataKey("g"),
            ConsumerGroupTargetAssignmentMetadataValue(3, 99),
            "0006 0001 67",
            "0000 00000003 01 00 08 0000000000000063",
        ),
        (
            ConsumerGroupTargetAssignmentMemberKey("g", "m"),
            ConsumerGroupTargetAssignmentMemberValue((TargetTopicPartitions(TOPIC, (1, 2)),)),
            "0007 0001 67 0001 6d",
            f"0000 02 {TOPIC.hex} 03 00000001 00000002 00 00",
        ),
        (
            ConsumerGroupCurrentMemberAssignmentKey("g", "m"),
            ConsumerGroupCurrentMemberAssignmentValue(3, 2, 1, (CurrentTopicPartitions(TOPIC, (1, 2), (2, 3)),)),
            "0008 0001 67 0001 6d",
            f"0000 00000003 00000002 01 02 {TOPIC.hex} 03 00000001 00000002 01 00 09 03 00000002 00000003 01 00",
        ),
        (
            ConsumerGroupRegularExpressionKey("g", "p.*"),
            ConsumerGroupRegularExpressionValue(("payments",), 1, 2),
            "0010 0001 67 0003 702e2a",
            "0000 02 09 7061796d656e7473 0000000000000001 0000000000000002 00",
        ),
    ],
)
def test_consumer_groups_are_written_as_kafka_writes_them(
    key: ConsumerGroupKey, value: ConsumerGroupValue, key_written: str, value_written: str
) -> None:
    assert encode_key(key) == bytes.fromhex(key_written)
    assert encode_value(value) == bytes.fromhex(value_written)
    assert decode_record(encode_key(key), encode_value(value)) == GroupRecord(key, value)
