"""Metadata records as bytes: Kafka's own, byte for byte."""

from uuid import UUID

import pytest

from riverlog.metadata.access_records import (
    ACCESS_RECORD_TYPES,
    AccessControlEntryRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    QuotaEntity,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from riverlog.metadata.encoding import FRAME_VERSION, BadMetadataRecord, decode_record, encode_record
from riverlog.metadata.records import (
    RECORD_TYPES,
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    ZkMigrationStateRecord,
)
from riverlog.wire.codec import encode_parts, joined
from riverlog.wire.primitives import varint_bytes

ONE = UUID(int=1)
RECORDS = [
    NoOpRecord(),
    FenceBrokerRecord(1, 2),
    UnfenceBrokerRecord(1, 2),
    ZkMigrationStateRecord(3),
    DelegationTokenRecord("User:a", "User:b", ("User:c",), 1, 2, 3, "token"),
    RemoveDelegationTokenRecord("token"),
    UserScramCredentialRecord("a", 1, b"salt", b"stored", b"server", 4096),
    RemoveUserScramCredentialRecord("a", 1),
    ClientQuotaRecord((QuotaEntity("user", "a"), QuotaEntity("ip", None)), "producer_byte_rate", 1.5, remove=True),
    AccessControlEntryRecord(ONE, 2, "orders", 3, "User:a", "*", 3, 3),
    RemoveAccessControlEntryRecord(ONE),
    BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=2, in_controlled_shutdown=1, cordoned_log_dirs=(ONE,)),
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
    PartitionChangeRecord(1, ONE, (1,), 2, (1, 2), (3,), (4,), 1, (ONE,), (5,), (6,)),
    PartitionChangeRecord(1, ONE, (), -1, eligible_leader_replicas=(), last_known_elr=()),
    PartitionRecord(1, ONE, (1, 2), (1,), (2,), (1,), 1, 1, 5, 9, (ONE, ONE), (2,), (1,)),
    RegisterBrokerRecord(broker_id=1, in_controlled_shutdown=True, log_dirs=(ONE,), cordoned_log_dirs=()),
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


@pytest.mark.parametrize(
    ("kind", "version"),
    [(kind, version) for kind in (*RECORD_TYPES, *ACCESS_RECORD_TYPES) for version in range(kind.version + 1)],
    ids=lambda value: value.declaration.__name__ if hasattr(value, "declaration") else f"v{value}",
)
def test_each_type_is_understood_in_each_version(kind, version):
    frame = bytearray(b"".join(varint_bytes(number) for number in (FRAME_VERSION, kind.key, version)))
    record = kind.declaration()
    assert decode_record(joined(encode_parts(record, version, frame))) == record


def test_all_types_are_known_that_kafka_has():
    kafka = {*range(6), *range(7, 13), 14, 15, *range(17, 29)}
    assert {kind.key for kind in (*RECORD_TYPES, *ACCESS_RECORD_TYPES)} == kafka
