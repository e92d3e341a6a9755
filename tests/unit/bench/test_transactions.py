"""Records are sent in transactions, none of them empty, and a run is believed once readers get to the end."""

from typing import cast

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from bench.lines import select
from bench.transactions import commit_many, commit_one, expect_readable, large, send_plainly
from bench.trial import Failed
from tests.support.trials import short_trial


class Transacting:
    """A producer that only counts: the records of each transaction, by partition."""

    def __init__(self, *, refusing: bool = False) -> None:
        self.open: dict[int, int] | None = None
        self.committed: list[dict[int, int]] = []
        self._refusing = refusing

    def begin_transaction(self) -> None:
        assert self.open is None
        self.open = {}

    def produce(self, topic: str, value: bytes, *, partition: int) -> None:
        assert self.open is not None
        self.open[partition] = self.open.get(partition, 0) + 1

    def commit_transaction(self, timeout: float) -> None:
        if self._refusing:
            raise KafkaException(KafkaError(KafkaError._FENCED))
        assert self.open is not None
        self.committed.append(self.open)
        self.open = None


def test_each_transaction_has_records_for_every_partition_and_all_are_counted() -> None:
    producer = Transacting()
    records, transactions = commit_many(cast(Producer, producer), "orders", partitions=3, seconds=0.01)
    assert transactions == len(producer.committed) > 0
    assert records == sum(sum(each.values()) for each in producer.committed)
    assert {tuple(sorted(each)) for each in producer.committed} == {(0, 1, 2)}


class Plain:
    """A producer that counts, and of which so many are never answered."""

    def __init__(self, unanswered: int = 0) -> None:
        self.sent: dict[int, int] = {}
        self._unanswered = unanswered

    def produce(self, topic: str, value: bytes, *, partition: int) -> None:
        self.sent[partition] = self.sent.get(partition, 0) + 1

    def flush(self, timeout: float) -> int:
        return self._unanswered


def test_plain_records_go_to_every_partition_and_all_must_be_answered() -> None:
    producer = Plain()
    assert send_plainly(cast(Producer, producer), "orders", partitions=3, seconds=0.01) == sum(producer.sent.values())
    assert sorted(producer.sent) == [0, 1, 2]
    with pytest.raises(Failed, match="2 records were not answered"):
        send_plainly(cast(Producer, Plain(unanswered=2)), "orders", partitions=3, seconds=0.01)


def test_a_small_transaction_has_one_record() -> None:
    producer = Transacting()
    commit_one(cast(Producer, producer), "orders")
    assert producer.committed == [{0: 1}]


def test_a_commit_that_is_refused_fails_the_run() -> None:
    with pytest.raises(Failed, match=r"commit_transaction: .*_FENCED"):
        commit_one(cast(Producer, Transacting(refusing=True)), "orders")


def test_markers_that_come_late_are_waited_for() -> None:
    ends = iter([5, 6, 7])
    expect_readable(lambda: next(ends), records=5, markers=2)
    assert list(ends) == []


def test_a_log_that_holds_more_than_was_committed_fails_the_run() -> None:
    with pytest.raises(Failed, match="5 records and 2 markers were committed, but readers get to 8"):
        expect_readable(lambda: 8, records=5, markers=2)


def test_transactions_are_measured_between_two_plain_runs() -> None:
    with short_trial(seconds=0.02) as trial:
        values = large(trial, partitions=2, durable=True)
    (line,) = select(["fsync-transactions-1k"])
    assert values.keys() == {row.name for row in line.rows}
    assert values["share"] == values["rate"] / values["plain"] > 0
