"""Metadata records as bytes: Kafka's own, byte for byte."""

from uuid import UUID

import pytest

from riverlog.metadata.encoding import BadMetadataRecord, decode_record, encode_record
from riverlog.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)

ONE = UUID(int=1)
RECORDS = [
    NoOpRecord(),
    BeginTransactionRecord(name="bootstrap"),
    EndTransactionRecord(),
    AbortTransactionRecord(),
    UnregisterBrokerRecord(broker_id=1, broker_epoch=2),
    BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=2, fenced=-1, log_dirs=(ONE,)),
    ClearElrRecord(topic_name="orders"),
    RegisterControllerRecord(controller_id=1, incarnation_id=ONE, end_points=(BrokerEndpoint("C", "localhost", 1),)),
    TopicRecord(name="orders", topic_id=ONE),
    RemoveTopicRecord(topic_id=ONE),
    FeatureLevelRecord(name="metadata.version", feature_level=30),
    ProducerIdsRecord(broker_id=1, broker_epoch=2, next_producer_id=1000),
    ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value=None),
    ConfigRecord(resource_type=2, resource_name="ü" * 200, name="retention.ms", value=""),
    PartitionRecord(partition_id=1, topic_id=ONE, replicas=(1, 2), isr=(1,), leader=1, directories=(ONE, ONE)),
    PartitionRecord(partition_id=1, topic_id=ONE, leader_recovery_state=1, eligible_leader_replicas=(3,)),
    PartitionChangeRecord(partition_id=1, topic_id=ONE),
    PartitionChangeRecord(partition_id=1, topic_id=ONE, isr=(), leader=-1, replicas=(1,), directories=(ONE,)),
    RegisterBrokerRecord(
        broker_id=1,
        incarnation_id=ONE,
        broker_epoch=5,
        end_points=(BrokerEndpoint("PLAINTEXT", "localhost", 65_535), BrokerEndpoint("B", "", 0, 3)),
        features=(BrokerFeature("metadata.version", 1, 30),),
        rack="a",
        fenced=False,
        log_dirs=(ONE,),
    ),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_record_comes_back_as_it_was(record):
    assert decode_record(encode_record(record)) == record


def test_the_bytes_are_those_that_kafka_writes():
    assert encode_record(NoOpRecord()).hex(" ") == "01 14 00 00"
    assert encode_record(TopicRecord(name="ab", topic_id=ONE)).hex() == "010200" + "036162" + ONE.hex + "00"
    level = encode_record(FeatureLevelRecord(name="metadata.version", feature_level=30))
    assert level == b"\x01\x0c\x00\x11metadata.version\x00\x1e\x00"
    change = encode_record(PartitionChangeRecord(partition_id=2, topic_id=ONE, isr=(7,), leader=7))
    tagged = "02" + "000502" + "00000007" + "0104" + "00000007"
    assert change.hex() == "010502" + "00000002" + ONE.hex + tagged


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_record_that_ends_early_or_late_is_refused(record):
    whole = encode_record(record)
    for size in range(len(whole)):
        with pytest.raises(BadMetadataRecord):
            decode_record(whole[:size])
    with pytest.raises(BadMetadataRecord, match="1 bytes stand behind"):
        decode_record(whole + b"\x00")


@pytest.mark.parametrize(
    "data",
    [
        b"\x02\x14\x00\x00",  # another frame
        b"\x01\x63\x00\x00",  # another type
        b"\x01\x14\x01\x00",  # a later version
    ],
)
def test_what_a_newer_version_wrote_is_refused_by_name(data):
    with pytest.raises(BadMetadataRecord, match="that this version of riverlog knows"):
        decode_record(data)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"\x01\x0c\x00\x00\x00\x1e\x00", "name is null"),
        (b"\x01\x0c\x00\x02\xff\x00\x1e\x00", "invalid UTF-8"),
        (b"\x01\x14\x00\xff\xff\xff\xff\xff\xff", "varint"),
        (
            b"\x01\x05\x02\x00\x00\x00\x01" + ONE.bytes + b"\x01\x01\x05\x00\x00\x00\x01\x00",
            "does not have the size that it claims",
        ),
    ],
)
def test_damage_is_named(data, sentence):
    with pytest.raises(BadMetadataRecord, match=sentence):
        decode_record(data)


def test_unknown_tagged_fields_are_stepped_over():
    whole = encode_record(TopicRecord(name="ab", topic_id=ONE))
    assert decode_record(whole[:-1] + b"\x01\x63\x02xy") == TopicRecord(name="ab", topic_id=ONE)


def test_an_older_version_is_understood():
    record = PartitionRecord(partition_id=1, topic_id=ONE, replicas=(1,), isr=(1,), leader=1)
    newest = encode_record(record)
    version_0 = b"\x01\x03\x00" + newest[3:-2] + b"\x00"  # without directories
    assert decode_record(version_0) == record
