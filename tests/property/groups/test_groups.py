"""Random lives of groups: whatever members do and whenever the node fails, nobody waits for ever and nothing is
remembered that no record says."""

from collections import Counter
from copy import deepcopy
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from riverlog.groups.classic.group import ClassicGroup, ClassicPhase
from riverlog.groups.commands import (
    Announce,
    CommitOffsets,
    DeleteGroups,
    DeleteOffsets,
    DescribeGroups,
    FetchOffsets,
    GroupsCommand,
    Heartbeat,
    JoinReply,
    Leave,
    Leaver,
    ListGroups,
    OffsetToCommit,
    ProducerIdentity,
    Protocol,
    Sync,
    SyncReply,
    TopicsDeleted,
    TransactionEnded,
)
from riverlog.groups.effects import SessionEnds
from riverlog.groups.records import GroupMetadataKey, GroupRecord
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Offset, ProducerEpoch, ProducerId, TopicPartition
from riverlog.model.machine import Ticket
from tests.support.groups import Coordinator, settings_of, subscription

GROUPS = st.sampled_from(["g", "h"])
MEMBERS = st.integers(0, 4)
OFFERS = st.sampled_from([("range",), ("range", "sticky"), ("sticky", "range"), ("sticky",)])
TOPICS = st.sampled_from([("t",), ("t", "u")])
TIMES = st.sampled_from([0.0, 0.5, 3.0, 7.0, 31.0, 700.0])
PRODUCERS = st.one_of(st.none(), st.sampled_from([1, 2]))


class Groups(RuleBasedStateMachine):
    """A coordinator and five clients that remember what they were told, not always the newest of it."""

    @initialize(delay_ms=st.sampled_from([0, 3_000]), size=st.sampled_from([3, 100]))
    def begin(self, delay_ms: int, size: int) -> None:
        self.coordinator = Coordinator(
            settings_of(group_initial_rebalance_delay_ms=delay_ms, group_max_size=size, offsets_retention_minutes=20)
        )
        self.lost: set[Ticket] = set()
        self.looked_at = 0
        self.askers: dict[Ticket, tuple[str, int]] = {}
        self.known: dict[tuple[str, int], JoinReply] = {}
        self.rounds: dict[tuple[int, int, str, int], tuple[str, str | None]] = {}
        self.assigned: dict[tuple[int, int, str, int, str], bytes] = {}
        self.fail_overs = 0

    def submit(self, command: GroupsCommand) -> Ticket:
        before = deepcopy(self.coordinator.machine.state)
        decide = self.coordinator.machine.decide

        def decided(*arguments: Any) -> Any:
            decision = decide(*arguments)
            assert self.coordinator.machine.state == before, "deciding changes nothing that is remembered"
            return decision

        self.coordinator.machine.decide = decided  # type: ignore[method-assign]
        try:
            return self.coordinator.submit(command)
        finally:
            del self.coordinator.machine.decide

    def knows(self, group_id: str, member: int) -> JoinReply:
        return self.known.get((group_id, member), JoinReply())

    # ---- what clients do

    @rule(
        group_id=GROUPS,
        member=MEMBERS,
        offers=OFFERS,
        topics=TOPICS,
        is_old=st.booleans(),
        forgets=st.booleans(),
        is_static=st.booleans(),
    )
    def join(
        self,
        group_id: str,
        member: int,
        offers: tuple[str, ...],
        topics: tuple[str, ...],
        is_old: bool,
        forgets: bool,
        is_static: bool,
    ) -> None:
        self.askers[Ticket(self.coordinator.asked + 1)] = (group_id, member)
        self.coordinator.join(
            group_id,
            "" if forgets else self.knows(group_id, member).member_id,
            group_instance_id=f"instance-{member}" if is_static else None,
            protocols=tuple(Protocol(name, subscription(*topics)) for name in offers),
            needs_known_id=not is_old,
            may_skip_assignment=not is_old,
            session_timeout_ms=6_000 + 1_000 * member,
            rebalance_timeout_ms=10_000 * member,
        )

    @rule(group_id=GROUPS, member=MEMBERS)
    def ask_for_the_coordinator(self, group_id: str, member: int) -> None:
        self.submit(Announce(group_id, str(member)))

    @rule(group_id=GROUPS, member=MEMBERS)
    def rejoin(self, group_id: str, member: int) -> None:
        self.join(group_id, member, ("range", "sticky"), ("t",), is_old=False, forgets=False, is_static=False)

    @rule(group_id=GROUPS, member=MEMBERS, stale=st.sampled_from([0, 0, 0, 1]))
    def sync(self, group_id: str, member: int, stale: int) -> None:
        joined = self.knows(group_id, member)
        generation = joined.generation_id - stale
        self.askers[Ticket(self.coordinator.asked + 1)] = (group_id, member)
        assignments = {each.member_id: f"{generation} {each.member_id}".encode() for each in joined.members}
        self.submit(Sync(group_id, joined.member_id, generation, assignments=assignments))

    @rule(group_id=GROUPS, member=MEMBERS, is_static=st.booleans())
    def beat(self, group_id: str, member: int, is_static: bool) -> None:
        joined = self.knows(group_id, member)
        instance = f"instance-{member}" if is_static else None
        self.submit(Heartbeat(group_id, joined.member_id, joined.generation_id, instance))

    @rule(group_id=GROUPS, members=st.lists(MEMBERS, max_size=3), by_instance=st.booleans())
    def leave(self, group_id: str, members: list[int], by_instance: bool) -> None:
        leavers = [
            Leaver("", f"instance-{member}") if by_instance else Leaver(self.knows(group_id, member).member_id)
            for member in members
        ]
        self.submit(Leave(group_id, tuple(leavers)))

    @rule(group_id=GROUPS, member=MEMBERS, topics=TOPICS, producer=PRODUCERS, is_simple=st.booleans())
    def commit(
        self, group_id: str, member: int, topics: tuple[str, ...], producer: int | None, is_simple: bool
    ) -> None:
        joined = JoinReply() if is_simple else self.knows(group_id, member)
        offsets = tuple(OffsetToCommit(topic, member, Offset(len(self.coordinator.log))) for topic in topics)
        writer = None if producer is None else ProducerIdentity(ProducerId(producer), ProducerEpoch(0))
        self.submit(CommitOffsets(group_id, offsets, joined.member_id, joined.generation_id, producer=writer))

    @rule(producer=st.sampled_from([1, 2]), committed=st.booleans())
    def end_transaction(self, producer: int, committed: bool) -> None:
        self.submit(TransactionEnded(ProducerIdentity(ProducerId(producer), ProducerEpoch(0)), committed))

    @rule(group_id=GROUPS, topic=st.sampled_from("tu"), member=MEMBERS)
    def delete_offsets(self, group_id: str, topic: str, member: int) -> None:
        self.submit(DeleteOffsets(group_id, (TopicPartition(topic, member),)))

    @rule(topic=st.sampled_from("tu"))
    def delete_topic(self, topic: str) -> None:
        self.submit(TopicsDeleted(frozenset({topic})))
        assert all(
            partition.topic != topic
            for group_id in self.coordinator.machine.state.offsets.groups()
            for partition in self.coordinator.machine.state.offsets.known(group_id)
        )

    @rule(group_ids=st.lists(GROUPS, max_size=3))
    def delete_groups(self, group_ids: list[str]) -> None:
        codes = self.coordinator.answers[self.submit(DeleteGroups(tuple(group_ids)))].codes
        left = {each.group_id for each in self.coordinator.ask(ListGroups())}
        for group_id, code in zip(group_ids, codes, strict=True):
            assert (group_id in left) == (code is ErrorCode.NON_EMPTY_GROUP)

    @rule(group_id=GROUPS, is_stable=st.booleans())
    def look(self, group_id: str, is_stable: bool) -> None:
        self.submit(DescribeGroups((group_id,)))
        self.submit(FetchOffsets(group_id, None, is_stable))

    # ---- what happens to all of them

    @rule(seconds=TIMES)
    def pass_time(self, seconds: float) -> None:
        self.coordinator.pass_time(seconds)

    @rule()
    def fail_over(self) -> None:
        self.lost |= self.unanswered()
        self.fail_overs += 1
        self.coordinator.fail_over()

    def life(self, ticket: Ticket, group_id: str) -> tuple[int, int]:
        """Generations count from the beginning when a group was deleted, and those not remembered are used again."""
        log = self.coordinator.log[: self.coordinator.answered_at[ticket]]
        return self.fail_overs, log.count(GroupRecord(GroupMetadataKey(group_id), None))

    def unanswered(self) -> set[Ticket]:
        asked = {Ticket(number) for number in range(1, self.coordinator.asked + 1)}
        return asked - self.coordinator.answers.keys() - self.lost

    # ---- what always holds

    @invariant()
    def whoever_is_not_answered_is_waited_for(self) -> None:
        waiting = Counter[Ticket]()
        for group in self.coordinator.machine.soft.groups.values():
            waiting.update(group.joining.values())
            waiting.update(group.syncing.values())
        assert waiting == Counter(self.unanswered())

    @invariant()
    def replaying_the_log_gives_the_state(self) -> None:
        coordinator = self.coordinator
        assert coordinator.replayed(coordinator.log).state == coordinator.machine.state
        assert coordinator.replayed(coordinator.machine.snapshot()).state == coordinator.machine.state

    @invariant()
    def live_groups_are_whole(self) -> None:
        for group in self.coordinator.machine.soft.groups.values():
            self._check(group)

    def _check(self, group: ClassicGroup) -> None:
        assert group.members or group.handed_out or group.phase is ClassicPhase.PREPARING
        assert (group.phase is ClassicPhase.EMPTY) <= (not group.members)
        assert not group.joining or group.phase is ClassicPhase.PREPARING
        assert not group.syncing or group.phase is ClassicPhase.COMPLETING
        assert group.joining.keys() | group.syncing.keys() | group.unsynced <= group.members.keys()
        assert not group.handed_out & group.members.keys()
        assert (group.leader in group.members) == bool(group.members)
        assert group.static_ids == {each.instance_id: each.id for each in group.members.values() if each.instance_id}
        assert group.supporters == Counter(
            offered.name for each in group.members.values() for offered in each.protocols
        )
        assert group.phase is not ClassicPhase.STABLE or not group.members or group.chosen_protocol()
        timers = self.coordinator.machine.soft.timers
        for member_id in group.members.keys() | group.handed_out:
            is_awaited = member_id in group.joining or member_id in group.syncing
            assert is_awaited or timers.get(SessionEnds(group.id, member_id)) is not None
        if group.phase is ClassicPhase.STABLE:
            assert self.coordinator.machine.state.classic[group.id] == group.record()

    @invariant()
    def a_generation_is_one(self) -> None:
        """All who are told of a generation are told the same."""
        answers = list(self.coordinator.answers.items())
        new, self.looked_at = answers[self.looked_at :], len(answers)
        for ticket, reply in new:
            if isinstance(reply, JoinReply):
                self._check_join(ticket, reply)
            elif isinstance(reply, SyncReply) and reply.code is ErrorCode.NONE:
                group_id, member = self.askers[ticket]
                joined = self.knows(group_id, member)
                told = self.assigned.setdefault(
                    (*self.life(ticket, group_id), group_id, joined.generation_id, joined.member_id), reply.assignment
                )
                assert told == reply.assignment

    def _check_join(self, ticket: Ticket, reply: JoinReply) -> None:
        group_id, member = self.askers[ticket]
        if reply.code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            self.known[group_id, member] = reply
        if reply.code is ErrorCode.NONE:
            told = self.rounds.setdefault(
                (*self.life(ticket, group_id), group_id, reply.generation_id),
                (reply.protocol_type or "", reply.protocol_name),
            )
            assert told == (reply.protocol_type, reply.protocol_name)
            assert not reply.members or reply.leader == reply.member_id

    def teardown(self) -> None:
        if not hasattr(self, "coordinator"):
            return
        self.coordinator.pass_time(10_000)
        assert self.unanswered() == set()
        for group in self.coordinator.machine.state.classic.values():
            assert group.members == ()
        assert self.coordinator.machine.soft.groups == {}


TestGroups = Groups.TestCase
TestGroups.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)
