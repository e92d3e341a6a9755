"""Committing, fetching, deleting and expiring offsets."""

from typing import Any
from uuid import UUID

import pytest

from riverlog.groups import machine
from riverlog.groups.commands import (
    CodesReply,
    CommitOffsets,
    CommittedOffset,
    DeleteOffsets,
    FetchOffsets,
    Leave,
    Leaver,
    OffsetsOfTopic,
    OffsetToCommit,
    ProducerIdentity,
    Protocol,
    TopicsDeleted,
    TransactionEnded,
)
from riverlog.groups.offsets import group_offsets
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_OFFSET, LeaderEpoch, Offset, ProducerEpoch, ProducerId, TopicId, TopicPartition
from tests.support.groups import Coordinator, settings_of
from tests.support.shapes import Shapes, topic_id

PRODUCER = ProducerIdentity(ProducerId(7), ProducerEpoch(0))
DAY = 86_400.0


def at(offset: int, topic: str = "t", partition: int = 0, **more: Any) -> OffsetToCommit:
    return OffsetToCommit(topic, partition, Offset(offset), **more)


def commit(coordinator: Coordinator, *offsets: OffsetToCommit, **more: Any) -> tuple[ErrorCode, ...]:
    codes: tuple[ErrorCode, ...] = coordinator.ask(CommitOffsets("g", offsets, **more)).codes
    return codes


def fetch(coordinator: Coordinator, topic: str = "t", partition: int = 0, **more: Any) -> CommittedOffset:
    topic_id = more.pop("topic_id", TopicId(UUID(int=0)))
    reply = coordinator.ask(FetchOffsets("g", (OffsetsOfTopic(topic, (partition,), topic_id),), **more))
    assert reply.code is ErrorCode.NONE
    offset: CommittedOffset
    (offset,) = reply.offsets
    return offset


def test_what_is_committed_is_given_back() -> None:
    coordinator = Coordinator()
    topic_id = TopicId(UUID(int=5))
    assert commit(
        coordinator, at(42, leader_epoch=LeaderEpoch(3), metadata="note", topic_id=topic_id), at(7, "u", 2)
    ) == (
        ErrorCode.NONE,
        ErrorCode.NONE,
    )
    assert fetch(coordinator) == CommittedOffset("t", 0, Offset(42), LeaderEpoch(3), "note", topic_id)
    assert fetch(coordinator, "t", 1) == CommittedOffset("t", 1)
    everything = coordinator.ask(FetchOffsets("g", None)).offsets
    assert [(each.topic, each.partition, each.offset) for each in everything] == [("t", 0, 42), ("u", 2, 7)]
    assert coordinator.ask(FetchOffsets("unknown", None)).offsets == ()
    assert coordinator.ask(FetchOffsets("unknown", (OffsetsOfTopic("t", (1,)),))).offsets[0].offset == NO_OFFSET


def test_a_note_that_is_too_long_spoils_only_its_own_partition() -> None:
    coordinator = Coordinator(settings_of(offset_metadata_max_bytes=4))
    assert commit(coordinator, at(1, metadata="12345"), at(2, "u", metadata="1234")) == (
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ErrorCode.NONE,
    )
    assert fetch(coordinator).offset == NO_OFFSET
    assert fetch(coordinator, "u").offset == 2


def test_a_topic_that_was_made_anew_starts_without_offsets() -> None:
    coordinator = Coordinator()
    commit(coordinator, at(42, topic_id=TopicId(UUID(int=1))))
    assert fetch(coordinator, topic_id=TopicId(UUID(int=1))).offset == 42
    assert fetch(coordinator, topic_id=TopicId(UUID(int=2))).offset == NO_OFFSET
    assert fetch(coordinator).offset == 42


MEMBER = "member"
COMMITS: list[tuple[str, dict[str, Any], ErrorCode]] = [
    ("none", {}, ErrorCode.NONE),
    ("none", {"generation_id": 1}, ErrorCode.GROUP_ID_NOT_FOUND),
    ("none", {"generation_id": 1, "knows_missing_groups": False}, ErrorCode.ILLEGAL_GENERATION),
    ("none", {"generation_id": 1, "producer": PRODUCER}, ErrorCode.ILLEGAL_GENERATION),
    ("empty", {}, ErrorCode.NONE),
    ("empty", {"generation_id": 2, "member_id": MEMBER}, ErrorCode.UNKNOWN_MEMBER_ID),
    ("stable", {"generation_id": 1, "member_id": MEMBER}, ErrorCode.NONE),
    ("stable", {"generation_id": 0, "member_id": MEMBER}, ErrorCode.ILLEGAL_GENERATION),
    ("stable", {"generation_id": -1, "member_id": MEMBER}, ErrorCode.ILLEGAL_GENERATION),
    ("stable", {"generation_id": 1, "member_id": "unknown"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ("stable", {"generation_id": 1, "member_id": MEMBER, "group_instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ("stable", {}, ErrorCode.UNKNOWN_MEMBER_ID),
    ("stable", {"producer": PRODUCER}, ErrorCode.NONE),
    ("stable", {"producer": PRODUCER, "generation_id": 0, "member_id": MEMBER}, ErrorCode.ILLEGAL_GENERATION),
    ("preparing", {"generation_id": 1, "member_id": MEMBER}, ErrorCode.NONE),
    ("completing", {"generation_id": 1, "member_id": MEMBER}, ErrorCode.REBALANCE_IN_PROGRESS),
    ("completing", {"generation_id": 1, "member_id": MEMBER, "producer": PRODUCER}, ErrorCode.NONE),
    ("simple", {"generation_id": 1, "member_id": MEMBER}, ErrorCode.UNKNOWN_MEMBER_ID),
    ("simple", {}, ErrorCode.NONE),
]


def in_state(state: str) -> tuple[Coordinator, str]:
    coordinator = Coordinator()
    if state == "none":
        return coordinator, MEMBER
    if state == "simple":
        commit(coordinator, at(1))
        return coordinator, MEMBER
    member_id, ticket = coordinator.enter()
    if state == "completing":
        return coordinator, member_id
    coordinator.assign([coordinator.answers[ticket]])
    if state == "empty":
        coordinator.ask(Leave("g", (Leaver(member_id),)))
    if state == "preparing":
        coordinator.enter()
    return coordinator, member_id


@pytest.mark.parametrize(("state", "fields", "code"), COMMITS)
def test_who_may_commit(state: str, fields: dict[str, Any], code: ErrorCode) -> None:
    coordinator, member_id = in_state(state)
    named = {name: member_id if value is MEMBER else value for name, value in fields.items()}
    written = len(coordinator.log)
    assert commit(coordinator, at(5), at(6, "u"), **named) == (code, code)
    assert len(coordinator.log) - written == (2 if code is ErrorCode.NONE else 0)


def test_a_static_member_that_was_replaced_may_not_commit() -> None:
    coordinator = Coordinator()
    old = coordinator.answers[coordinator.join(group_instance_id="i")]
    coordinator.assign([old])
    coordinator.join(group_instance_id="i")
    fenced = commit(coordinator, at(1), member_id=old.member_id, generation_id=1, group_instance_id="i")
    assert fenced == (ErrorCode.FENCED_INSTANCE_ID,)


def test_committing_is_a_sign_of_life() -> None:
    coordinator = Coordinator()
    member = coordinator.stable(session_timeout_ms=10_000)[0]
    for _ in range(3):
        coordinator.pass_time(6)
        assert commit(coordinator, at(1), member_id=member.member_id, generation_id=1) == (ErrorCode.NONE,)


# ---- transactions


def test_offsets_of_a_transaction_are_unstable_until_it_ends() -> None:
    coordinator = Coordinator()
    commit(coordinator, at(1))
    commit(coordinator, at(5), producer=PRODUCER)
    assert fetch(coordinator).offset == 1
    assert fetch(coordinator, require_stable=True) == CommittedOffset("t", 0, code=ErrorCode.UNSTABLE_OFFSET_COMMIT)
    everything = coordinator.ask(FetchOffsets("g", None, require_stable=True)).offsets
    assert [each.code for each in everything] == [ErrorCode.UNSTABLE_OFFSET_COMMIT]
    coordinator.fail_over()
    assert coordinator.ask(TransactionEnded(PRODUCER, committed=True)) is None
    assert fetch(coordinator, require_stable=True).offset == 5


def test_an_aborted_transaction_changes_no_offset() -> None:
    coordinator = Coordinator()
    commit(coordinator, at(1))
    commit(coordinator, at(5), producer=PRODUCER)
    coordinator.ask(TransactionEnded(PRODUCER, committed=False))
    assert fetch(coordinator, require_stable=True).offset == 1


def test_a_transaction_needs_a_group() -> None:
    coordinator = Coordinator()
    reply = coordinator.ask(CommitOffsets("", (at(1),), producer=PRODUCER))
    assert reply.codes == (ErrorCode.INVALID_GROUP_ID,)
    assert coordinator.ask(CommitOffsets("", (at(1),))).codes == (ErrorCode.NONE,), "old tools commit for no group"


# ---- deleting


def delete(coordinator: Coordinator, *partitions: TopicPartition) -> CodesReply:
    reply: CodesReply = coordinator.ask(DeleteOffsets("g", partitions))
    return reply


def test_offsets_of_topics_that_nobody_reads_can_be_deleted() -> None:
    coordinator = Coordinator()
    member = coordinator.stable()[0]
    commit(coordinator, at(1), at(2, "u"), member_id=member.member_id, generation_id=1)
    reply = delete(coordinator, TopicPartition("t", 0), TopicPartition("u", 0), TopicPartition("u", 0))
    assert reply.codes == (ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE, ErrorCode.NONE)
    assert fetch(coordinator).offset == 1
    assert fetch(coordinator, "u").offset == NO_OFFSET
    coordinator.ask(Leave("g", (Leaver(member.member_id),)))
    assert delete(coordinator, TopicPartition("t", 0)).codes == (ErrorCode.NONE,)


def test_offsets_that_cannot_be_deleted() -> None:
    coordinator = Coordinator()
    assert delete(coordinator, TopicPartition("t", 0)).code is ErrorCode.GROUP_ID_NOT_FOUND
    assert coordinator.ask(DeleteOffsets("", ())).code is ErrorCode.INVALID_GROUP_ID
    coordinator.stable(protocol_type="connect", protocols=(Protocol("default", b""),))
    assert delete(coordinator, TopicPartition("t", 0)).code is ErrorCode.NON_EMPTY_GROUP


def test_a_simple_group_is_gone_with_its_last_offset() -> None:
    coordinator = Coordinator()
    commit(coordinator, at(1), producer=PRODUCER)
    assert delete(coordinator, TopicPartition("t", 0)).codes == (ErrorCode.NONE,)
    assert delete(coordinator, TopicPartition("t", 0)).code is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_deleted_topic_takes_its_offsets_along() -> None:
    coordinator = Coordinator()
    commit(coordinator, at(1), at(2, "u"), at(3, "v"))
    commit(coordinator, at(9, "t", 1), producer=PRODUCER)
    assert coordinator.ask(TopicsDeleted(frozenset({"t", "v"}))) is None
    assert [each.topic for each in coordinator.ask(FetchOffsets("g", None)).offsets] == ["u"]
    coordinator.ask(TransactionEnded(PRODUCER, committed=True))
    assert fetch(coordinator, "t", 1).offset == NO_OFFSET


def test_many_offsets_of_a_deleted_topic_are_forgotten_a_part_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_offsets, "OFFSETS_FORGOTTEN_PER_TURN_MAX", 3)
    coordinator = Coordinator(topics=Shapes.of(t=9))
    old, new = TopicId(UUID(int=5)), TopicId(topic_id("t"))
    for group_id in ("g", "h", "i"):
        offsets = (*(at(1, "t", number, topic_id=old) for number in range(4)), at(1, "u"))
        coordinator.ask(CommitOffsets(group_id, offsets))
    written = len(coordinator.log)
    coordinator.ask(TopicsDeleted(frozenset({"t"})))
    assert len(coordinator.log) - written == 3
    coordinator.ask(CommitOffsets("h", (at(7, "t", 1, topic_id=new),)))
    coordinator.ask(CommitOffsets("i", (at(8, "t", 2, topic_id=new),), producer=PRODUCER))
    coordinator.pass_time(1)
    left = {group_id: set(of_group) for group_id, of_group in coordinator.machine.state.offsets.by_group.items()}
    other, first, second = TopicPartition("u", 0), TopicPartition("t", 1), TopicPartition("t", 2)
    assert left == {"g": {other}, "h": {other, first}, "i": {other, second}}, "what is of the new topic t is kept"
    assert coordinator.machine.soft.gone_topics == set()


# ---- expiring


def test_offsets_of_simple_groups_expire_after_their_commit() -> None:
    coordinator = Coordinator()
    commit(coordinator, at(1))
    coordinator.pass_time(5 * DAY)
    commit(coordinator, at(2, "u"))
    coordinator.pass_time(2.1 * DAY)
    assert [each.topic for each in coordinator.ask(FetchOffsets("g", None)).offsets] == ["u"]
    coordinator.pass_time(5 * DAY)
    assert coordinator.ask(FetchOffsets("g", None)).offsets == ()


def test_offsets_of_a_group_expire_once_it_has_long_been_empty() -> None:
    coordinator = Coordinator()
    member = coordinator.stable(session_timeout_ms=1_800_000)[0]
    commit(coordinator, at(1), member_id=member.member_id, generation_id=1)
    for _ in range(10 * 24 * 4):
        coordinator.pass_time(DAY / 24 / 4)
        coordinator.beat(member)
    assert fetch(coordinator).offset == 1, "its members read the topic"
    coordinator.ask(Leave("g", (Leaver(member.member_id),)))
    coordinator.fail_over()
    coordinator.pass_time(6.9 * DAY)
    assert fetch(coordinator).offset == 1
    coordinator.pass_time(0.2 * DAY)
    assert fetch(coordinator).offset == NO_OFFSET
    assert coordinator.machine.state.classic == {}, "a group with neither members nor offsets is gone"


def test_offsets_of_topics_that_a_group_gave_up_expire() -> None:
    coordinator = Coordinator(settings_of(group_initial_rebalance_delay_ms=0, offsets_retention_minutes=20))
    member = coordinator.stable(session_timeout_ms=1_800_000)[0]
    commit(coordinator, at(1), at(2, "u"), member_id=member.member_id, generation_id=1)
    coordinator.pass_time(1_210)
    coordinator.beat(member)
    coordinator.pass_time(600)
    assert [each.topic for each in coordinator.ask(FetchOffsets("g", None)).offsets] == ["t"]


def test_of_members_that_are_not_consumers_it_is_not_known_what_they_need() -> None:
    coordinator = Coordinator(settings_of(group_initial_rebalance_delay_ms=0, offsets_retention_minutes=20))
    other = {"protocol_type": "connect", "protocols": (Protocol("default", b""),)}
    member = coordinator.stable(session_timeout_ms=1_800_000, **other)[0]
    commit(coordinator, at(1), member_id=member.member_id, generation_id=1)
    coordinator.pass_time(1_800)
    assert fetch(coordinator).offset == 1


def test_a_client_of_old_may_say_how_long_its_offsets_live() -> None:
    coordinator = Coordinator()
    commit(coordinator, at(1, leader_epoch=LeaderEpoch(3), topic_id=TopicId(UUID(int=1))), retention_ms=1_000)
    live = coordinator.machine.state
    coordinator.fail_over()
    assert coordinator.machine.state == live
    coordinator.pass_time(601)
    assert fetch(coordinator).offset == NO_OFFSET


def test_the_longest_retention_is_as_good_as_none() -> None:
    coordinator = Coordinator()
    assert commit(coordinator, at(2**63 - 1), retention_ms=2**63 - 1) == (ErrorCode.NONE,)
    coordinator.pass_time(8 * DAY)
    assert fetch(coordinator).offset == 2**63 - 1


def test_an_offset_with_a_transaction_under_way_does_not_expire() -> None:
    coordinator = Coordinator()
    commit(coordinator, at(1))
    commit(coordinator, at(2), producer=PRODUCER)
    coordinator.pass_time(8 * DAY)
    assert fetch(coordinator).offset == 1


def test_a_group_with_a_transaction_under_way_is_not_forgotten() -> None:
    coordinator = Coordinator()
    member = coordinator.stable()[0]
    coordinator.ask(Leave("g", (Leaver(member.member_id),)))
    commit(coordinator, at(2), producer=PRODUCER)
    coordinator.pass_time(8 * DAY)
    assert coordinator.machine.state.classic["g"].generation == 2


def test_the_many_offsets_of_one_group_expire_a_part_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_offsets, "OFFSETS_FORGOTTEN_PER_TURN_MAX", 3)
    coordinator = Coordinator(settings_of(offsets_retention_minutes=1))
    for group_id in ("g", "h"):
        coordinator.ask(CommitOffsets(group_id, tuple(at(1, "t", number) for number in range(7))))
    coordinator.pass_time(599)
    written = len(coordinator.log)
    coordinator.pass_time(1.0005)
    assert len(coordinator.log) - written == 3
    coordinator.pass_time(1)
    assert coordinator.machine.state.offsets.groups() == set()


def test_many_offsets_expire_a_part_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "OFFSETS_EXPIRED_PER_TURN_MAX", 4)
    coordinator = Coordinator(settings_of(offsets_retention_minutes=1))
    for group_id in ("", "a", "b", "c"):
        coordinator.ask(CommitOffsets(group_id, (at(1), at(1, "u"))))
    coordinator.pass_time(599)
    written = len(coordinator.log)
    coordinator.pass_time(1.0005)
    assert len(coordinator.log) - written == 4, "a turn ends behind the group that reaches the limit"
    coordinator.pass_time(1)
    assert coordinator.machine.state.offsets.groups() == set()
    coordinator.ask(CommitOffsets("", (at(1),)))
    coordinator.pass_time(700)
    assert coordinator.machine.state.offsets.groups() == set(), "the next look begins at the beginning"
