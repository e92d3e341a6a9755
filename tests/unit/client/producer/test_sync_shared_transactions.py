"""Shared transactions without an event loop, against a broker in the same process."""

import pytest

from riverlog import NewRecord, SyncMember, SyncSharedTransactions
from riverlog.client.errors import KafkaError, ProducerFenced, TimedOut, Unreachable
from riverlog.client.producer.shared_transactions import CommittedBatch, SharedBatch
from riverlog.testing import RunningBroker
from riverlog.wire.messages.end_transaction import EndTransactionRequest
from tests.support.mishaps import Mishaps


def test_an_owner_and_its_members(riverlog_broker: RunningBroker) -> None:
    servers = riverlog_broker.bootstrap_servers
    riverlog_broker.create_topic("out")
    with SyncSharedTransactions(servers, "orders", incarnation="a") as pipeline:
        assert pipeline.committed() is None
        for number in range(2):
            batch = pipeline.batch(number)
            with SyncMember(servers, batch, task=0, attempt=number) as member:
                assert member.is_needed
                member.write(NewRecord("out", b"%d" % each) for each in range(2_000))
                membership = member.finish()
            pipeline.commit(batch, [membership], marker=b"m%d" % number)
        assert pipeline.committed() == CommittedBatch(1, b"m1")
        batch = pipeline.batch(2)
        with SyncMember(servers, batch, task=0, attempt=2):
            pipeline.abort(batch)


def test_to_abort_a_commit_whose_answer_was_lost_says_that_it_is_committed(
    riverlog_broker: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    mishaps = Mishaps(monkeypatch)
    with SyncSharedTransactions(
        riverlog_broker.bootstrap_servers, "orders", incarnation="a", block_ms_max=0
    ) as pipeline:
        mishaps.lost = [EndTransactionRequest]
        with pytest.raises(TimedOut):
            pipeline.commit(pipeline.batch(0), [], marker=b"here")
        with pytest.raises(KafkaError, match="batch 0 of 'orders' is committed, though the answer"):
            pipeline.abort(pipeline.batch(0))
        assert pipeline.committed() == CommittedBatch(0, b"here")


def test_who_cannot_start_leaves_nothing_behind() -> None:
    batch = SharedBatch("orders", 1, 0, "a", 0)
    with pytest.raises(Unreachable):
        SyncMember("127.0.0.1:1", batch, task=0, attempt=0).__enter__()
    with pytest.raises(Unreachable):
        SyncSharedTransactions("127.0.0.1:1", "orders", incarnation="a").__enter__()


def test_a_batch_of_nobody_is_not_joined(riverlog_broker: RunningBroker) -> None:
    servers = riverlog_broker.bootstrap_servers
    with (
        SyncSharedTransactions(servers, "orders", incarnation="a"),
        pytest.raises(ProducerFenced),
        SyncMember(servers, SharedBatch("orders", 99_999, 0, "a", 0), task=0, attempt=0),
    ):
        raise AssertionError("it joined")
