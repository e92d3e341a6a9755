"""Members that speak the classic protocol in a consumer group."""

import pytest

from riverlog.groups.commands import Heartbeat, Leave, Leaver, Protocol, Sync
from riverlog.model.errors import ErrorCode
from tests.support.consumers import ConsumerCoordinator, FakeClassicConsumer, FakeConsumer, at_once
from tests.support.shapes import topic_id

ORDERS = topic_id("orders")


@pytest.fixture
def coordinator() -> ConsumerCoordinator:
    return ConsumerCoordinator()


@pytest.fixture
def alice(coordinator: ConsumerCoordinator) -> FakeConsumer:
    """Return a member that speaks the consumer protocol and has everything."""
    alice = coordinator.consumer("a")
    alice.beat()
    return alice


@pytest.mark.parametrize("is_cooperative", [True, False])
def test_a_classic_member_joins_gets_its_share_and_gives_up_its_share(
    coordinator: ConsumerCoordinator, alice: FakeConsumer, is_cooperative: bool
) -> None:
    carl = FakeClassicConsumer(coordinator, is_cooperative=is_cooperative)
    assert carl.rejoin() is ErrorCode.NONE
    assert carl.reads == {}, "it waits for what alice has"
    assert carl.beat() is ErrorCode.NONE, "joining again would not help"
    alice.beat(topic_partitions=None)
    alice.beat()
    assert carl.beat() is ErrorCode.NONE
    assert (alice.reads, carl.reads) == ({"orders": [0, 1]}, {"orders": [2, 3]})
    assert coordinator.group.phase == "Stable"
    bob = coordinator.consumer("b")
    bob.beat()
    for _ in range(4):
        for member in (carl, alice, bob):
            member.beat()
    assert sorted([*alice.reads["orders"], *bob.reads["orders"], *carl.reads["orders"]]) == [0, 1, 2, 3]
    assert coordinator.group.phase == "Stable"


def test_a_classic_member_that_is_called_and_does_not_come_is_left_behind(
    coordinator: ConsumerCoordinator, alice: FakeConsumer
) -> None:
    carl = FakeClassicConsumer(coordinator)
    carl.rejoin(rebalance_timeout_ms=30_000)
    alice.beat(topic_partitions=None), alice.beat()
    for _ in range(4):
        assert len(coordinator.group.members) == 2
        coordinator.ask(Heartbeat("g", carl.id, carl.generation))
        coordinator.pass_time(9)
        alice.beat()
    assert list(coordinator.group.members) == ["a"]


def test_a_classic_member_that_never_syncs_is_left_behind(
    coordinator: ConsumerCoordinator, alice: FakeConsumer
) -> None:
    carl = FakeClassicConsumer(coordinator)
    reply = coordinator.answers[carl.join(rebalance_timeout_ms=10_000)]
    coordinator.pass_time(9)
    alice.beat()
    assert reply.member_id in coordinator.group.members
    coordinator.pass_time(1)
    assert reply.member_id not in coordinator.group.members


def test_a_silent_classic_member_loses_its_place_with_its_own_session(
    coordinator: ConsumerCoordinator, alice: FakeConsumer
) -> None:
    carl = FakeClassicConsumer(coordinator)
    carl.rejoin(session_timeout_ms=6_000)
    coordinator.pass_time(5)
    assert carl.beat() is ErrorCode.NONE
    coordinator.pass_time(6)
    assert list(coordinator.group.members) == ["a"]


def test_a_static_classic_member_comes_back_under_another_id(
    coordinator: ConsumerCoordinator, alice: FakeConsumer
) -> None:
    carl = FakeClassicConsumer(coordinator, instance_id="i")
    carl.rejoin()
    alice.beat(topic_partitions=None), alice.beat()
    carl.beat()
    epoch, had = coordinator.group.epoch, carl.reads
    again = FakeClassicConsumer(coordinator, instance_id="i")
    assert again.rejoin() is ErrorCode.NONE
    assert (again.reads, coordinator.group.epoch) == (had, epoch)
    assert again.id != carl.id
    assert coordinator.ask(Heartbeat("g", carl.id, carl.generation, "i")) is ErrorCode.FENCED_INSTANCE_ID
    assert carl.rejoin() is ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_may_change_its_protocol(coordinator: ConsumerCoordinator, alice: FakeConsumer) -> None:
    carl = FakeClassicConsumer(coordinator, instance_id="i")
    carl.rejoin()
    modern = coordinator.consumer("m", instance_id="i")
    assert modern.beat().code is ErrorCode.NONE
    assert coordinator.group.static_ids == {"i": "m"}
    assert not coordinator.group.members["m"].is_classic


def test_wrong_words_are_refused_with_the_codes_of_the_classic_protocol(
    coordinator: ConsumerCoordinator, alice: FakeConsumer
) -> None:
    carl = FakeClassicConsumer(coordinator, instance_id="i")
    carl.rejoin()
    generation = carl.generation

    def beat(member_id: str, generation_id: int, instance_id: str | None = None) -> str:
        return coordinator.ask(Heartbeat("g", member_id, generation_id, instance_id)).name

    def sync(**more: object) -> str:
        return coordinator.ask(Sync("g", carl.id, generation, **more)).code.name

    assert beat("x", generation) == "UNKNOWN_MEMBER_ID"
    assert beat("a", 1) == "UNKNOWN_MEMBER_ID", "alice speaks the consumer protocol"
    assert beat(carl.id, generation + 1) == "ILLEGAL_GENERATION"
    assert beat(carl.id, generation, "unknown") == "UNKNOWN_MEMBER_ID"
    assert beat("x", generation, "i") == "FENCED_INSTANCE_ID"
    assert sync(protocol_type="connect") == "INCONSISTENT_GROUP_PROTOCOL"
    assert sync(protocol_name="other") == "INCONSISTENT_GROUP_PROTOCOL"
    assert sync(protocol_name="range", protocol_type="consumer") == "NONE"
    coordinator.consumer("b").beat()
    assert sync() == "REBALANCE_IN_PROGRESS"


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": ()}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": (Protocol("range", b"\x00"),)}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"session_timeout_ms": 1}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"member_id": "x", "group_instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_cannot_join_is_told_why(
    coordinator: ConsumerCoordinator, alice: FakeConsumer, more: dict[str, object], code: ErrorCode
) -> None:
    written = len(coordinator.log)
    protocols = (Protocol("range", FakeClassicConsumer(coordinator).subscription()),)
    member_id = more.pop("member_id", "")
    reply = coordinator.answers[coordinator.join("g", member_id, **{"protocols": protocols, **more})]
    assert reply.code is code
    assert len(coordinator.log) == written


def test_classic_members_must_share_a_protocol_among_themselves(
    coordinator: ConsumerCoordinator, alice: FakeConsumer
) -> None:
    FakeClassicConsumer(coordinator, protocol="range").rejoin()
    other = FakeClassicConsumer(coordinator, protocol="sticky")
    assert coordinator.answers[other.join()].code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_full_group_and_a_forbidding_policy_turn_classic_members_away() -> None:
    full = ConsumerCoordinator(at_once(group_consumer_max_size=1))
    full.consumer("a").beat()
    assert full.answers[FakeClassicConsumer(full).join()].code is ErrorCode.GROUP_MAX_SIZE_REACHED
    closed = ConsumerCoordinator(at_once(group_consumer_migration_policy="disabled"))
    closed.consumer("a").beat()
    assert closed.answers[FakeClassicConsumer(closed).join()].code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_members_leave_by_id_or_by_instance(coordinator: ConsumerCoordinator, alice: FakeConsumer) -> None:
    bob = coordinator.consumer("b", instance_id="j")
    bob.beat()
    carl = FakeClassicConsumer(coordinator, instance_id="i")
    carl.rejoin()
    leavers = (
        Leaver("x"),
        Leaver("", "unknown"),
        Leaver("x", "i"),
        Leaver("", "j"),
        Leaver(carl.id, "i"),
        Leaver(carl.id),
    )
    codes = coordinator.ask(Leave("g", leavers)).codes
    assert [code.name for code in codes] == [
        "UNKNOWN_MEMBER_ID",
        "UNKNOWN_MEMBER_ID",
        "FENCED_INSTANCE_ID",
        "NONE",
        "NONE",
        "UNKNOWN_MEMBER_ID",
    ]
    assert list(coordinator.group.members) == ["a"]


def test_a_group_of_classic_members_alone_still_follows_its_topics() -> None:
    coordinator = ConsumerCoordinator(at_once(group_consumer_migration_policy="upgrade"), orders=2)
    alice = coordinator.consumer("a")
    alice.beat()
    carl = FakeClassicConsumer(coordinator)
    carl.rejoin()
    alice.leave()
    coordinator.fail_over()
    carl.beat()
    coordinator.change_topics(orders=3)
    carl.beat()
    assert carl.reads == {"orders": [0, 1, 2]}


def test_a_long_name_makes_no_id_that_does_not_fit_into_a_record(
    coordinator: ConsumerCoordinator, alice: FakeConsumer
) -> None:
    carl = FakeClassicConsumer(coordinator, instance_id="i" * 32_767)
    assert carl.rejoin() is ErrorCode.NONE
    assert len(carl.id) < 32_767


def test_a_rack_without_a_name_is_none(coordinator: ConsumerCoordinator, alice: FakeConsumer) -> None:
    metadata = bytes.fromhex("0003 00000000 ffffffff 00000000 ffffffff 0000")
    carl = FakeClassicConsumer(coordinator)
    assert carl.rejoin(protocols=(Protocol("range", metadata),)) is ErrorCode.NONE
    assert coordinator.group.members[carl.id].metadata.rack_id is None
