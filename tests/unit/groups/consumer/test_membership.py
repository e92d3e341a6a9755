"""Consumer groups as offsets and administration see them."""

import pytest

from riverlog.groups.commands import (
    CommitOffsets,
    DeleteGroups,
    DeleteOffsets,
    DescribeConsumerGroups,
    DescribedConsumer,
    DescribedConsumerGroup,
    DescribeGroups,
    FetchOffsets,
    GroupType,
    ListedGroup,
    ListGroups,
    OffsetToCommit,
    ProducerIdentity,
)
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Offset, ProducerEpoch, ProducerId, TopicPartition
from tests.support.consumers import ConsumerCoordinator, FakeConsumer
from tests.support.groups import CLIENT
from tests.support.shapes import topic_id

ORDERS = topic_id("orders")


@pytest.fixture
def coordinator() -> ConsumerCoordinator:
    return ConsumerCoordinator()


@pytest.fixture
def pair(coordinator: ConsumerCoordinator) -> tuple[FakeConsumer, FakeConsumer]:
    """Return two members at epoch 2: a has 0 and 1 since epoch 1, b has 2 and 3 since epoch 2."""
    alice, bob = coordinator.consumer("a"), coordinator.consumer("b")
    alice.beat()
    coordinator.settle(alice, bob)
    return alice, bob


def commit(coordinator: ConsumerCoordinator, member_id: str, epoch: int, *partitions: int, **more: object) -> list[str]:
    offsets = tuple(OffsetToCommit("orders", partition, Offset(1)) for partition in partitions)
    reply = coordinator.ask(CommitOffsets("g", offsets, member_id, epoch, **more))
    return [code.name for code in reply.codes]


def test_a_member_commits_in_its_epoch(coordinator: ConsumerCoordinator, pair: object) -> None:
    assert commit(coordinator, "a", 2, 0, 3) == ["NONE", "NONE"]
    assert commit(coordinator, "a", 3, 0) == ["STALE_MEMBER_EPOCH"]
    assert commit(coordinator, "x", 2, 0) == ["UNKNOWN_MEMBER_ID"]
    assert commit(coordinator, "", -1, 0) == ["UNKNOWN_MEMBER_ID"]


def test_a_member_that_is_behind_commits_what_it_has_had_since_then(
    coordinator: ConsumerCoordinator, pair: object
) -> None:
    assert commit(coordinator, "a", 1, 0, 1, 2) == ["NONE", "NONE", "STALE_MEMBER_EPOCH"]
    assert commit(coordinator, "b", 1, 2, 0) == ["STALE_MEMBER_EPOCH", "STALE_MEMBER_EPOCH"]


def test_a_member_commits_what_it_is_giving_up(
    coordinator: ConsumerCoordinator, pair: tuple[FakeConsumer, ...]
) -> None:
    coordinator.consumer("c").beat()
    pair[0].beat(topic_partitions=None), pair[1].beat(topic_partitions=None)
    revoking = [
        (each.id, index) for each in coordinator.group.members.values() for index in each.revoking.get(ORDERS, ())
    ]
    assert revoking
    for member_id, index in revoking:
        assert commit(coordinator, member_id, 2, index) == ["NONE"]


def test_versions_that_do_not_know_stale_epochs_cannot_commit(coordinator: ConsumerCoordinator, pair: object) -> None:
    assert commit(coordinator, "a", 2, 0, knows_missing_groups=False) == ["UNSUPPORTED_VERSION"]


def test_a_transaction_commits_for_a_member_or_for_nobody(coordinator: ConsumerCoordinator, pair: object) -> None:
    producer = ProducerIdentity(ProducerId(1), ProducerEpoch(0))
    assert commit(coordinator, "", -1, 0, producer=producer) == ["NONE"]
    assert commit(coordinator, "", -1, 0, producer=producer, needs_empty_group=True) == ["UNKNOWN_MEMBER_ID"]
    assert commit(coordinator, "a", 2, 0, producer=producer) == ["NONE"]
    assert commit(coordinator, "x", 2, 0, producer=producer) == ["UNKNOWN_MEMBER_ID"]


def test_a_tool_commits_when_nobody_is_there(coordinator: ConsumerCoordinator, pair: tuple[FakeConsumer, ...]) -> None:
    for member in pair:
        member.leave()
    assert commit(coordinator, "", -1, 0) == ["NONE"]
    assert commit(coordinator, "a", 2, 0) == ["UNKNOWN_MEMBER_ID"]


@pytest.mark.parametrize(
    ("member_id", "epoch", "code"),
    [
        (None, -1, ErrorCode.NONE),
        ("a", 2, ErrorCode.NONE),
        ("a", 1, ErrorCode.STALE_MEMBER_EPOCH),
        ("x", 2, ErrorCode.UNKNOWN_MEMBER_ID),
        (None, 2, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_member_sees_offsets_in_its_epoch(
    coordinator: ConsumerCoordinator, pair: object, member_id: str | None, epoch: int, code: ErrorCode
) -> None:
    assert coordinator.ask(FetchOffsets("g", None, False, member_id, epoch)).code is code


def test_offsets_of_topics_that_are_read_are_kept(coordinator: ConsumerCoordinator, pair: object) -> None:
    commit(coordinator, "a", 2, 0)
    reply = coordinator.ask(DeleteOffsets("g", (TopicPartition("orders", 0), TopicPartition("other", 0))))
    assert reply.codes == (ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE)
    for member in pair:
        coordinator.pass_time(30)
        member.beat()
    assert coordinator.machine.state.offsets.has_group("g")


def test_offsets_expire_with_the_group(coordinator: ConsumerCoordinator, pair: tuple[FakeConsumer, ...]) -> None:
    commit(coordinator, "a", 2, 0)
    for member in pair:
        member.leave()
    coordinator.pass_time(10_080 * 60 + 600)
    assert coordinator.machine.state.consumers == {}
    assert not coordinator.machine.state.offsets.has_group("g")


def test_a_group_is_deleted_when_nobody_is_in_it(
    coordinator: ConsumerCoordinator, pair: tuple[FakeConsumer, ...]
) -> None:
    assert coordinator.ask(DeleteGroups(("g",))).codes == (ErrorCode.NON_EMPTY_GROUP,)
    for member in pair:
        member.leave()
    assert coordinator.ask(DeleteGroups(("g", "h"))).codes == (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND)
    before = coordinator.machine.state
    assert before.consumers == {}
    coordinator.fail_over()
    assert coordinator.machine.state == before


def test_a_group_is_listed_with_its_type(coordinator: ConsumerCoordinator, pair: object) -> None:
    listed = ListedGroup("g", "consumer", "Stable", GroupType.CONSUMER)
    assert coordinator.ask(ListGroups()) == (listed,)
    assert coordinator.ask(ListGroups(types=frozenset({"consumer"}), states=frozenset({"stable"}))) == (listed,)
    assert coordinator.ask(ListGroups(types=frozenset({"classic"}))) == ()


def test_a_group_is_described_with_its_members(coordinator: ConsumerCoordinator, pair: object) -> None:
    first, missing = coordinator.ask(DescribeConsumerGroups(("g", "h")))
    has = {ORDERS: frozenset({0, 1})}
    alice = DescribedConsumer("a", None, None, 2, CLIENT, ("orders",), None, has, has, is_classic=False)
    assert first == DescribedConsumerGroup("g", "Stable", 2, 2, "uniform", (alice, first.members[1]))
    assert (missing.code, missing.message) == (ErrorCode.GROUP_ID_NOT_FOUND, "There is no consumer group 'h'.")


def test_what_a_member_is_giving_up_is_still_its_own(
    coordinator: ConsumerCoordinator, pair: tuple[FakeConsumer, ...]
) -> None:
    coordinator.change_topics(orders=0, payments=0)
    pair[0].beat(topic_partitions=None)
    coordinator.topics = coordinator.machine.soft.topics = type(coordinator.topics).of(orders=4)
    member = coordinator.ask(DescribeConsumerGroups(("g",)))[0].members[0]
    assert (member.assignment, member.target_assignment) == ({ORDERS: frozenset({0, 1})}, {})


def test_topics_that_are_gone_are_left_out(coordinator: ConsumerCoordinator, pair: object) -> None:
    coordinator.change_topics(orders=0)
    member = coordinator.ask(DescribeConsumerGroups(("g",)))[0].members[0]
    assert (member.assignment, member.target_assignment) == ({}, {})


def test_a_consumer_group_is_no_classic_group(coordinator: ConsumerCoordinator, pair: object) -> None:
    commit(coordinator, "a", 2, 0)
    described = coordinator.ask(DescribeGroups(("g",)))[0]
    assert (described.state, described.code) == ("Dead", ErrorCode.GROUP_ID_NOT_FOUND)
