"""The life of brokers, where the scenarios leave something out."""

from uuid import UUID

import pytest

from riverlog.metadata.commands.brokers import UnregisterBroker
from riverlog.metadata.commands.liveness import BecomeActive, BrokerUnreachable, HeartbeatReply, Woken
from riverlog.metadata.commands.topics import DeleteTopics
from riverlog.metadata.limits import LEADERS_SOUGHT_SECONDS, PARTITIONS_PER_WAKE_MAX
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NO_NODE, NodeId
from riverlog.model.machine import Instant, Moment, Ticket
from tests.unit.metadata.active_cluster import ActiveCluster


def test_a_broker_leads_again_what_it_prefers_after_a_while() -> None:
    cluster = ActiveCluster(None, None)
    cluster.create("orders", 1, (1, 2))
    cluster.beat(1, want_fence=True)
    assert cluster.partition("orders").leader == 2
    cluster.beat(1)
    assert cluster.partition("orders").leader == 2
    assert cluster.partition("orders").isr == (2,)
    for _ in range(int(LEADERS_SOUGHT_SECONDS)):
        cluster.wait(1)
        cluster.beat(1)
        cluster.beat(2)
    assert cluster.partition("orders").leader == 2, "it is not in sync"


def test_a_slice_ends_where_others_want_their_turn() -> None:
    cluster = ActiveCluster(None, None, None)
    cluster.create("orders", 20)
    cluster.seconds = 9
    for number in (2, 3):
        cluster.beat(number)
    before = len(cluster.records)
    cluster.do(Woken(partitions_max=8))
    assert len(cluster.records) == before + 8
    assert cluster.machine.next_deadline() == 0
    assert not cluster.broker(1).fenced
    assert cluster.beat(1).is_fenced, "it is on its way out"
    cluster.create("bills", 10)
    assert all(NodeId(1) not in each.replicas for each in cluster.topic("bills").partitions), "and gets nothing new"
    cluster.do(Woken(partitions_max=8))
    cluster.do(Woken(partitions_max=8))
    assert cluster.broker(1).fenced
    assert all(NodeId(1) not in each.isr and each.leader != 1 for each in cluster.topic("orders").partitions)
    assert not cluster.beat(1).is_fenced


def test_a_topic_may_go_while_a_broker_leaves_it() -> None:
    cluster = ActiveCluster(None, None, None)
    first, second = cluster.create("a", 5), cluster.create("b", 5)
    cluster.seconds = 9
    cluster.beat(2)
    cluster.beat(3)
    cluster.do(Woken(partitions_max=2))
    cluster.do(DeleteTopics((first, second)))
    cluster.do(Woken())
    assert cluster.broker(1).fenced


def test_a_new_active_controller_goes_on_with_a_broker_that_stops() -> None:
    cluster = ActiveCluster(None, None, None)
    cluster.create("orders", 5000)
    assert cluster.beat(1, want_shut_down=True) == HeartbeatReply(True, False, False)
    assert cluster.machine.index.leads(NodeId(1))
    cluster.do(BecomeActive())
    cluster.beat(1, want_shut_down=True)
    cluster.wait(0)
    assert not cluster.machine.index.leads(NodeId(1))
    assert not cluster.beat(1, want_shut_down=True).should_shut_down, "others have not said that they know it"
    for number in (2, 3):
        cluster.beat(number)
    assert cluster.beat(1, want_shut_down=True).should_shut_down
    assert cluster.broker(1).fenced


def test_a_lost_directory_is_left_and_then_taken_away() -> None:
    cluster = ActiveCluster(None, None)
    cluster.create("orders", 2, (1, 2), (1, 2))
    lost, left = cluster.partition("orders", 0).directories[0], cluster.partition("orders", 1).directories[0]
    assert lost != left
    cluster.beat(1, offline_log_dirs=(lost,))
    assert cluster.partition("orders", 0).leader == 2
    assert cluster.partition("orders", 1).leader == 1
    assert cluster.broker(1).log_dirs == (left,)
    before = len(cluster.records)
    cluster.beat(1, offline_log_dirs=(lost,))
    assert len(cluster.records) == before


def test_cordoned_directories_are_noted_once() -> None:
    cluster = ActiveCluster(None)
    cordoned = (UUID(int=1001),)
    cluster.beat(1, cordoned_log_dirs=cordoned)
    before = len(cluster.records)
    cluster.beat(1, cordoned_log_dirs=cordoned)
    cluster.beat(1)
    assert cluster.broker(1).cordoned_log_dirs == cordoned
    assert len(cluster.records) == before


def test_a_process_that_is_gone_is_left_behind_by_the_next_one() -> None:
    """Its session has ended, and the controller has not yet come round to fencing it."""
    cluster = ActiveCluster(None, None)
    cluster.create("orders", 1, (1, 2))
    cluster.seconds = 9
    cluster.register(1, incarnation=11)
    assert cluster.partition("orders").isr == (2,)
    assert cluster.partition("orders").rare.eligible_leader_replicas == (), "it did not stop cleanly"
    cluster.beat(2)
    cluster.beat(1)
    cluster.seconds += 9
    clean = cluster.broker(2).epoch
    cluster.register(2, incarnation=22, previous=clean)
    assert cluster.partition("orders").leader == NO_NODE
    assert cluster.partition("orders").rare.eligible_leader_replicas == (2,)


def test_records_that_are_not_written_are_decided_anew() -> None:
    cluster = ActiveCluster(None, None)
    cluster.create("orders", 1, (1, 2))
    cluster.seconds = 1
    now = Moment(Instant(1), 0)
    unwritten = cluster.machine.decide(BrokerUnreachable(NodeId(1), cluster.broker(1).epoch), Ticket(2), now)
    cluster.machine.withdraw(unwritten.records, now)
    assert not cluster.broker(1).fenced
    cluster.wait(9)
    assert cluster.broker(1).fenced


def test_a_broker_that_is_gone_for_good_is_eligible_nowhere() -> None:
    cluster = ActiveCluster(None, None)
    cluster.create("orders", 1, (1, 2), min_insync_replicas="2")
    cluster.beat(1, want_fence=True)
    assert cluster.partition("orders").rare.eligible_leader_replicas == (1,)
    cluster.do(UnregisterBroker(NodeId(1)))
    assert cluster.partition("orders").rare.eligible_leader_replicas == ()
    with pytest.raises(Refusal) as refused:
        cluster.do(UnregisterBroker(NodeId(1)))
    assert refused.value.code is ErrorCode.BROKER_ID_NOT_REGISTERED


def many_alone() -> ActiveCluster:
    """Return a cluster of which one broker has gone that alone had more partitions than one decision looks at."""
    cluster = ActiveCluster(None, None)
    cluster.create("orders", 0, *[(1,)] * (PARTITIONS_PER_WAKE_MAX + 1))
    cluster.do(BrokerUnreachable(NodeId(1), cluster.broker(1).epoch))
    cluster.wait(0)
    assert all(each.rare.eligible_leader_replicas == (1,) for each in cluster.topic("orders").partitions)
    return cluster


def test_a_process_that_leaves_many_partitions_does_so_before_the_next_one_comes() -> None:
    cluster = many_alone()
    for _ in range(2):
        with pytest.raises(Refusal, match="must leave 1001 partitions first") as refused:
            cluster.register(1, incarnation=11)
        assert refused.value.code is ErrorCode.REQUEST_TIMED_OUT
    cluster.wait(0)
    assert all(each.rare.eligible_leader_replicas == () for each in cluster.topic("orders").partitions)
    before = len(cluster.records)
    cluster.register(1, incarnation=11)
    assert len(cluster.records) == before + 1
    assert cluster.broker(1).epoch == before


def test_a_process_that_comes_back_while_it_leaves_is_left_again() -> None:
    cluster = many_alone()
    with pytest.raises(Refusal, match="first"):
        cluster.register(1, incarnation=11)
    cluster.wait(0)
    cluster.beat(1)
    cluster.wait(0)
    assert cluster.partition("orders", 5).leader == 1
    cluster.wait(9)
    with pytest.raises(Refusal, match="first"):
        cluster.register(1, incarnation=11)


def test_a_broker_that_goes_for_good_leaves_many_partitions_first() -> None:
    cluster = many_alone()
    with pytest.raises(Refusal, match="first"):
        cluster.do(UnregisterBroker(NodeId(1)))
    cluster.wait(0)
    cluster.do(UnregisterBroker(NodeId(1)))
    assert NodeId(1) not in cluster.machine.image.brokers
