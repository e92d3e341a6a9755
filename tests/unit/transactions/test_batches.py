"""Facts about transactional ids as the bytes that Kafka writes, and back."""

import pytest

from riverlog.model.errors import Refusal
from riverlog.model.ids import ProducerId, TopicPartition
from riverlog.model.transactions import TransactionVersion
from riverlog.records.record import BatchBuilder, read_batches
from riverlog.transactions.batches import BadTransactionRecord, decode_facts, decode_record, encode_facts
from riverlog.transactions.incarnations import BatchName, Incarnation, Shared
from riverlog.transactions.limits import TRANSACTION_END_BYTES_MAX
from riverlog.transactions.members import SharedMember, SharedMemberState
from riverlog.transactions.records import (
    MemberFact,
    MemberLogKey,
    MemberName,
    StateFact,
    TransactionFact,
    TransactionLogKey,
    member_value_of,
    value_of,
)
from riverlog.transactions.states import NOBODY, Transaction, TransactionState
from riverlog.wire.codec import encode
from tests.support.transactions import V2, producer_of

KEY = b"\0\0" + b"\0\2" + b"tx"
OLD_VALUE = bytes.fromhex(
    "0000"  # version 0
    "0000000000000007"  # producer id
    "0003"  # epoch
    "0000ea60"  # a minute
    "01"  # Ongoing
    "00000001" "0001" "74" "00000002" "00000000" "00000004"  # t: 0, 4
    "0000000000000014"  # last update
    "000000000000000a"  # start
)  # fmt: skip
VALUE = bytes.fromhex(
    "0001"  # version 1
    "0000000000000007"
    "0003"
    "0000ea60"
    "01"
    "02" "02" "74" "03" "00000000" "00000004" "00"  # t: 0, 4
    "0000000000000014"
    "000000000000000a"
    "02"  # two tagged fields
    "00" "08" "0000000000000007"  # the previous id
    "02" "02" "0002"  # the client's version of transactions
)  # fmt: skip
OPEN = Transaction(
    producer_of(7, 3),
    timeout_ms=60_000,
    updated_ms=20,
    state=TransactionState.ONGOING,
    partitions=frozenset({TopicPartition("t", 0), TopicPartition("t", 4)}),
    started_ms=10,
    version=V2,
    last=producer_of(7, -1),
)


def written(fact: StateFact) -> tuple[bytes | None, bytes | None]:
    ((_, (record,)),) = read_batches(encode_facts([fact], 1_000))
    return record.key, record.value


def test_a_fact_is_written_as_kafka_writes_it() -> None:
    assert written(TransactionFact("tx", OPEN)) == (KEY, VALUE)
    assert written(TransactionFact("tx", None)) == (KEY, None)


MANY = frozenset(TopicPartition(f"t{number % 130:0130}", number) for number in range(1_000))
LAST = ProducerId((1 << 63) - 1)


@pytest.mark.parametrize(
    "transaction",
    [
        Transaction(producer_of(0, 0), timeout_ms=1, updated_ms=0),
        OPEN,
        OPEN._replace(partitions=MANY, last=NOBODY, version=TransactionVersion.CLASSIC),
        OPEN.ended(committed=True, version=V2, now_ms=20),
        OPEN.ended(committed=False, version=V2, now_ms=20).completed(30),
        OPEN._replace(producer=producer_of(7, 32_766)).ended(committed=True, version=V2, now_ms=20, new_id=LAST),
        OPEN._replace(shared=Shared((Incarnation("run", 3, 4, b"marker"),), is_open=True)),
    ],
)
@pytest.mark.parametrize("name", ["tx", "ä" * 300])
def test_a_fact_is_written_as_the_wire_writes_it(transaction: Transaction, name: str) -> None:
    key, value = encode(TransactionLogKey(name), 0), encode(value_of(transaction), 1)
    assert written(TransactionFact(name, transaction)) == (b"\0\0" + key, b"\0\1" + value)


@pytest.mark.parametrize("partitions", [frozenset(), OPEN.partitions, MANY])
@pytest.mark.parametrize("name", ["tx", "x" * 126, "x" * 127, "ä" * 300])
def test_a_member_is_written_as_the_wire_writes_it(partitions: frozenset[TopicPartition], name: str) -> None:
    member = SharedMember(producer_of(7, 3), BatchName(name, 1 << 40), 4, 5, SharedMemberState.ABORTING, partitions)
    key, value = encode(MemberLogKey(name, 7), 0), encode(member_value_of(member), 0)
    fact = MemberFact(MemberName(name, ProducerId(7)), member)
    assert written(fact) == (b"\x27\x10" + key, b"\0\0" + value)
    assert decode_record(*_both(written(fact))) == fact


def _both(pair: tuple[bytes | None, bytes | None]) -> tuple[bytes, bytes | None]:
    key, value = pair
    assert key is not None
    return key, value


def test_both_versions_of_kafka_are_understood() -> None:
    assert decode_record(KEY, VALUE) == TransactionFact("tx", OPEN)
    old = decode_record(KEY, OLD_VALUE)
    assert old is not None
    assert old.transaction is not None
    assert (old.transaction.partitions, old.transaction.version) == (OPEN.partitions, TransactionVersion.CLASSIC)


def test_what_kafka_does_not_remember_stands_in_a_field_that_it_passes_over() -> None:
    ended = OPEN.ended(committed=True, version=V2, now_ms=30)
    _, value = written(TransactionFact("tx", ended))
    assert value is not None
    assert value.endswith(bytes.fromhex("904e" "02" "0003"))  # tag 10000: the last epoch was 3  # fmt: skip
    assert decode_record(KEY, value) == TransactionFact("tx", ended)


def test_a_decision_is_one_batch() -> None:
    facts = [TransactionFact("a", OPEN), TransactionFact("b", None)]
    ((header, records),) = read_batches(encode_facts(facts, 1_000))
    assert list(decode_facts(header, records)) == facts


def test_whatever_could_be_begun_can_be_ended() -> None:
    begun = [TransactionFact("a", OPEN)]
    size = len(encode_facts(begun, 1_000))
    with pytest.raises(Refusal):
        encode_facts(begun, 1_000, size + TRANSACTION_END_BYTES_MAX - 1)
    assert len(encode_facts(begun, 1_000, size + TRANSACTION_END_BYTES_MAX)) == size
    ended = [TransactionFact("a", OPEN.ended(committed=False, version=V2, now_ms=30))]
    assert size < len(encode_facts(ended, 1_000, size + TRANSACTION_END_BYTES_MAX)) < size + TRANSACTION_END_BYTES_MAX


def test_other_kinds_and_control_batches_are_passed_over() -> None:
    assert decode_record(b"\0\5rest", b"") is None
    marker = BatchBuilder(
        producer_id=OPEN.producer.id, producer_epoch=OPEN.producer.epoch, transactional=True, control=True
    )
    marker.append(b"\0\0\0\1", b"\0\0\0\0\0\0", timestamp_ms=0)
    ((header, records),) = read_batches(marker.build())
    assert list(decode_facts(header, records)) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"", VALUE),
        (b"\0\0\0\7tx", VALUE),
        (KEY + b"x", VALUE),
        (KEY, b""),
        (KEY, b"\0\2" + VALUE[2:]),
        (KEY, VALUE[:-1]),
        (KEY, VALUE + b"\0"),
        (KEY, VALUE[:16] + b"\x63" + VALUE[17:]),
    ],
)
def test_bytes_that_cannot_be_read_are_an_error_in_one_sentence(key: bytes, value: bytes) -> None:
    with pytest.raises(BadTransactionRecord):
        decode_record(key, value)
