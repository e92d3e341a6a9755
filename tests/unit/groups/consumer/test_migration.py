"""Groups that change their protocol while members are there."""

import pytest

from riverlog.groups.classic.group import ClassicPhase
from riverlog.groups.commands import Leave, Leaver, ListGroups, Protocol
from riverlog.model.errors import ErrorCode
from tests.support.consumers import ConsumerCoordinator, FakeClassicConsumer, at_once
from tests.support.shapes import topic_id

ORDERS = topic_id("orders")


def classic_pair(coordinator: ConsumerCoordinator, **more: bool) -> list[FakeClassicConsumer]:
    """Make a stable classic group of two."""
    first, second = FakeClassicConsumer(coordinator, **more), FakeClassicConsumer(coordinator, **more)
    assert first.rejoin() is ErrorCode.NONE
    waiting = second.join()
    assert coordinator.waits(waiting)
    again = first.join()
    replies = [(first, coordinator.answers[again]), (second, coordinator.answers[waiting])]
    for member, reply in sorted(replies, key=lambda each: not each[1].members):
        assert member.joined(reply) is ErrorCode.NONE
    assert coordinator.phase == ClassicPhase.STABLE
    assert (first.reads, second.reads) == ({"orders": [0, 2]}, {"orders": [1, 3]})
    return [first, second]


def listed(coordinator: ConsumerCoordinator) -> list[tuple[str, str]]:
    return [(each.type, each.state) for each in coordinator.ask(ListGroups())]


def leave(member: FakeClassicConsumer) -> Leave:
    return Leave("g", (Leaver(member.id, member.instance_id),))


def settle(members: list) -> None:
    for _ in range(10):
        for member in members:
            member.beat()


@pytest.mark.parametrize("is_cooperative", [True, False])
def test_a_classic_group_is_upgraded_one_member_after_the_other(is_cooperative: bool) -> None:
    coordinator = ConsumerCoordinator()
    classic = classic_pair(coordinator, is_cooperative=is_cooperative)
    modern = coordinator.consumer("m")
    assert modern.beat().code is ErrorCode.NONE
    assert listed(coordinator) == [("consumer", "Reconciling")]
    assert coordinator.machine.soft.groups == {}
    settle([*classic, modern])
    reads = sorted(index for each in (*classic, modern) for index in each.reads["orders"])
    assert reads == [0, 1, 2, 3]
    before = coordinator.machine.state
    coordinator.fail_over()
    assert coordinator.machine.state == before
    for member in classic:  # rolled over, one by one
        coordinator.ask(leave(member))
        newcomer = coordinator.consumer(f"m{member.id}")
        newcomer.beat()
    assert not any(member.is_classic for member in coordinator.group.members.values())


def test_upgrading_moves_no_partition_that_need_not_move() -> None:
    coordinator = ConsumerCoordinator()
    first, second = classic_pair(coordinator)
    modern = coordinator.consumer("m")
    modern.beat()
    settle([first, second, modern])
    assert set(first.reads["orders"]) <= {0, 2}
    assert set(second.reads["orders"]) <= {1, 3}
    assert len(modern.reads["orders"]) == 1


def test_a_consumer_group_becomes_classic_again_with_its_last_modern_member() -> None:
    coordinator = ConsumerCoordinator()
    classic = classic_pair(coordinator)
    modern = coordinator.consumer("m")
    modern.beat()
    settle([*classic, modern])
    epoch = coordinator.group.epoch
    modern.leave()
    assert coordinator.machine.state.consumers == {}
    assert listed(coordinator) == [("classic", "PreparingRebalance")]
    before = coordinator.machine.state
    coordinator.fail_over()
    assert coordinator.machine.state == before
    assert before.classic["g"].generation == epoch
    assert [each.member_id for each in before.classic["g"].members] == [member.id for member in classic]


def test_the_last_modern_members_session_also_ends_the_consumer_group() -> None:
    coordinator = ConsumerCoordinator()
    carl = FakeClassicConsumer(coordinator)
    coordinator.consumer("m").beat()
    carl.rejoin()
    for _ in range(16):
        coordinator.pass_time(3)
        if coordinator.machine.state.consumers:
            carl.beat()
    assert listed(coordinator) == [("classic", "PreparingRebalance")]
    tickets = carl.join()
    assert coordinator.answers[tickets].members


def test_a_member_that_missed_the_downgrade_joins_again() -> None:
    coordinator = ConsumerCoordinator()
    carl = FakeClassicConsumer(coordinator)
    modern = coordinator.consumer("m")
    modern.beat()
    carl.rejoin()
    for _ in range(16):
        coordinator.pass_time(3)
        if coordinator.machine.state.consumers:
            carl.beat()
    assert modern.beat().code is ErrorCode.UNKNOWN_MEMBER_ID
    assert modern.beat().code is ErrorCode.NONE
    assert coordinator.machine.state.consumers.keys() == {"g"}


def test_a_static_member_that_returns_to_the_classic_protocol_takes_the_group_along() -> None:
    coordinator = ConsumerCoordinator()
    modern = coordinator.consumer("m", instance_id="i")
    modern.beat()
    FakeClassicConsumer(coordinator).rejoin()
    modern.leave(epoch=-2)
    back = FakeClassicConsumer(coordinator, instance_id="i")
    assert coordinator.answers[back.join()].code is ErrorCode.NONE
    assert coordinator.machine.state.consumers == {}
    assert listed(coordinator) == [("classic", "PreparingRebalance")]


def test_empty_groups_change_their_protocol_freely() -> None:
    coordinator = ConsumerCoordinator(at_once(group_consumer_migration_policy="disabled"))
    modern = coordinator.consumer("m")
    modern.beat()
    modern.leave()
    assert listed(coordinator) == [("consumer", "Empty")]
    carl = FakeClassicConsumer(coordinator)
    coordinator.join("g", "unknown")
    assert listed(coordinator) == [("consumer", "Empty")]
    carl.rejoin()
    assert listed(coordinator) == [("classic", "Stable")]
    assert coordinator.machine.state.consumers == {}
    coordinator.ask(leave(carl))
    assert listed(coordinator) == [("classic", "Empty")]
    modern.beat()
    assert listed(coordinator) == [("consumer", "Stable")]
    assert coordinator.machine.state.classic == {}


def test_those_who_wait_in_a_classic_group_are_called_to_join_the_consumer_group() -> None:
    coordinator = ConsumerCoordinator(at_once(group_initial_rebalance_delay_ms=3_000))
    carl = FakeClassicConsumer(coordinator)
    ticket = carl.join()
    assert coordinator.waits(ticket)
    modern = coordinator.consumer("m")
    assert modern.beat().code is ErrorCode.NONE
    reply = coordinator.answers[ticket]
    assert (reply.code, reply.member_id) == (ErrorCode.REBALANCE_IN_PROGRESS, carl.id)
    assert carl.rejoin() is ErrorCode.NONE
    settle([carl, modern])
    assert sorted([*carl.reads["orders"], *modern.reads["orders"]]) == [0, 1, 2, 3]


def test_while_a_classic_group_assigns_members_keep_what_they_said_to_have() -> None:
    coordinator = ConsumerCoordinator()
    first, second = classic_pair(coordinator)
    waiting = first.join()
    joined = second.join()
    assert coordinator.answers[waiting].code is coordinator.answers[joined].code is ErrorCode.NONE
    assert coordinator.phase == ClassicPhase.COMPLETING
    coordinator.consumer("m").beat()
    owners = coordinator.group.owners
    assert {index: owners[ORDERS, index] for index in range(4)} == {
        0: first.id,
        1: second.id,
        2: first.id,
        3: second.id,
    }


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_a_policy_may_forbid_the_upgrade(policy: str) -> None:
    coordinator = ConsumerCoordinator(at_once(group_consumer_migration_policy=policy))
    FakeClassicConsumer(coordinator).rejoin()
    reply = coordinator.consumer("m").beat()
    assert (reply.code, "forbids" in (reply.message or "")) == (ErrorCode.GROUP_ID_NOT_FOUND, True)
    assert coordinator.phase == ClassicPhase.STABLE


def test_a_policy_may_forbid_the_downgrade() -> None:
    coordinator = ConsumerCoordinator(at_once(group_consumer_migration_policy="upgrade"))
    modern = coordinator.consumer("m")
    modern.beat()
    carl = FakeClassicConsumer(coordinator)
    carl.rejoin()
    modern.leave()
    settle([carl])
    assert carl.reads == {"orders": [0, 1, 2, 3]}
    assert listed(coordinator) == [("consumer", "Stable")]


def test_groups_that_are_not_of_consumers_are_left_alone() -> None:
    coordinator = ConsumerCoordinator()
    coordinator.stable(protocol_type="connect")
    assert coordinator.consumer("m").beat().code is ErrorCode.GROUP_ID_NOT_FOUND
    assert coordinator.phase == ClassicPhase.STABLE


@pytest.mark.parametrize(
    ("protocol", "code"), [("cooperative-sticky", ErrorCode.NONE), ("of-my-own", ErrorCode.GROUP_ID_NOT_FOUND)]
)
def test_notes_of_an_assignor_of_ones_own_are_not_lost(protocol: str, code: ErrorCode) -> None:
    coordinator = ConsumerCoordinator()
    carl = FakeClassicConsumer(coordinator, protocol=protocol)
    joined = coordinator.answers[carl.join()]
    with_notes = bytes.fromhex("0000 00000000 00000001 07")
    coordinator.sync(joined, assignments={carl.id: with_notes})
    assert coordinator.consumer("m").beat().code is code


@pytest.mark.parametrize("metadata", [b"", b"\x00\x01\x00", b"\xff\xff\x00"])
def test_groups_that_cannot_be_read_are_left_alone(metadata: bytes) -> None:
    coordinator = ConsumerCoordinator()
    coordinator.stable(protocols=(Protocol("range", metadata),))
    reply = coordinator.consumer("m").beat()
    assert (reply.code, "cannot be read" in (reply.message or "")) == (ErrorCode.GROUP_ID_NOT_FOUND, True)
    assert coordinator.phase == ClassicPhase.STABLE
