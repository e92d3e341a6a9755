"""The consumer protocol (KIP-848): heartbeats say what a member wants and has; the answer is what it is to have.

The coordinator assigns. A member that is late or mistaken about its epoch is fenced: it gives up everything and joins
again, with nothing. Every heartbeat is answered at once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import assert_never

from riverlog.groups.classic.group import ClassicPhase
from riverlog.groups.classic.groups import ClassicGroups
from riverlog.groups.commands import (
    ConsumerHeartbeat,
    ConsumerHeartbeatReply,
    TopicsChanged,
)
from riverlog.groups.consumer.assignors.subscriber import Partitions
from riverlog.groups.consumer.checks import check_epoch, check_heartbeat, checked_holder, unknown_member
from riverlog.groups.consumer.draft import Draft
from riverlog.groups.consumer.group import (
    JOINING,
    LEFT_FOR_A_WHILE,
    ConsumerGroup,
    ConsumerMember,
    ConsumerMemberState,
    Owned,
)
from riverlog.groups.consumer.migration import check_upgrade, downgraded, may_downgrade, may_upgrade, upgraded
from riverlog.groups.consumer.rebalance import ConsumerRebalance, left_for_a_while
from riverlog.groups.effects import (
    AssignmentDue,
    ClassicMemberEnds,
    ConsumerDeadline,
    ConsumerSessionEnds,
    GroupEffects,
    RevocationEnds,
    SilenceNoticed,
)
from riverlog.groups.records import ConsumerGroupMemberMetadataValue, GroupMetadataKey
from riverlog.groups.soft_state import GroupsSoftState
from riverlog.groups.state import GroupsState
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.machine import Ticket
from riverlog.model.settings import NodeSettings


class ConsumerProtocol:
    """Runs the consumer groups; all state is in what it was given."""

    def __init__(
        self, state: GroupsState, soft: GroupsSoftState, settings: NodeSettings, classic: ClassicGroups
    ) -> None:
        self._state = state
        self._soft = soft
        self._settings = settings
        self._classic = classic
        self._rebalance = ConsumerRebalance(soft, settings)

    def resume(self, effects: GroupEffects) -> None:
        """Bring groups with members to life after a replay: everybody gets a fresh session."""
        for group in self._state.consumers.values():
            self._resume(group, effects)

    def _resume(self, group: ConsumerGroup, effects: GroupEffects) -> None:
        for member in group.members.values():
            if not member.is_classic:  # what it was told last may not have reached it, and nobody remembers
                self._rebalance.sessions.soft(group.id, effects).unconfirmed.add(member.id)
            if member.epoch == LEFT_FOR_A_WHILE:
                self._rebalance.sessions.away(group.id, member.id, effects)
            else:
                self._rebalance.sessions.heard_of(group.id, member, effects)
            if member.state is ConsumerMemberState.UNREVOKED and not member.is_classic:
                patience = effects.in_ms(max(0, member.metadata.rebalance_timeout_ms))
                self._soft.timers.set(RevocationEnds(group.id, member.id), patience)

    def resume_anew(self, group_id: str, newcomers: Iterable[str], effects: GroupEffects) -> None:
        """Resume a group from its records, as after a replay, without members that did not get into them."""
        for member_id in newcomers:
            self._rebalance.sessions.forget(group_id, member_id)
        group = self._state.consumers.get(group_id, ConsumerGroup(group_id))
        self._rebalance.sessions.dissolve(group)
        self._resume(group, effects)

    def heartbeat(self, command: ConsumerHeartbeat, ticket: Ticket, effects: GroupEffects) -> None:
        """Take a member in, move it towards its target, or let it go."""
        try:
            check_heartbeat(command, self._settings.group_consumer_assignors)
            reply = self._leave(command, effects) if command.member_epoch < JOINING else self._stay(command, effects)
        except Refusal as refusal:
            reply = ConsumerHeartbeatReply(refusal.code, refusal.message)
        effects.answer(ticket, reply)

    def topics_changed(self, command: TopicsChanged, ticket: Ticket, effects: GroupEffects) -> None:
        """Assign topics that have come or grown, and take back those that are gone."""
        self._soft.topics = command.topics
        for group_id, soft in list(self._soft.consumers.items()):
            if soft.is_current:  # others look at all topics when their first member is heard of
                draft = Draft(self._state.consumers[group_id])
                self._rebalance.match_anew(draft, command.changed, effects)
                if draft.facts or not command.changed.isdisjoint(draft.group.subscribed_topics()):
                    self._rebalance.renew(draft, effects, changed=False)
                draft.hand_over(effects.facts)
        effects.answer(ticket, None)

    def time_is_up(self, deadline: ConsumerDeadline, effects: GroupEffects) -> None:
        """Go on without those who did not come in time."""
        draft = effects.drafts.setdefault(deadline.group_id, Draft(self._state.consumers[deadline.group_id]))
        match deadline:
            case SilenceNoticed():
                self._rebalance.sessions.missed(deadline.group_id, deadline.member_id, effects)
            case ConsumerSessionEnds() | RevocationEnds() | ClassicMemberEnds():
                self.remove(draft, [deadline.member_id], effects)
            case AssignmentDue():
                self._rebalance.assign(draft, effects)
            case _:
                assert_never(deadline)
        draft.hand_over(effects.facts)

    # ---- stay

    def _stay(self, command: ConsumerHeartbeat, effects: GroupEffects) -> ConsumerHeartbeatReply:
        draft = self._draft(command)
        member = self._member(draft, command)
        had = member.assigned
        resubscribed = self._rebalance.subscribe(draft, member.id, _metadata(member, command), effects)
        self._rebalance.update(draft, effects, resubscribed=resubscribed)
        member = self._rebalance.reconcile(
            draft, member.id, command.topic_partitions, effects, resubscribed=resubscribed
        )
        self._rebalance.sessions.heard_of(draft.group.id, member, effects)
        self._end_classic(draft, effects)
        draft.hand_over(effects.facts)
        soft = self._rebalance.sessions.soft(draft.group.id, effects)
        assignment = without_epochs(member.assigned)
        if command.topic_partitions == assignment:
            soft.unconfirmed.discard(member.id)
        elif member.assigned != had or command.member_epoch != member.epoch:
            soft.unconfirmed.add(member.id)
        wants_all = command.member_epoch == JOINING or _says_all(command)
        return ConsumerHeartbeatReply(
            member_id=member.id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=self._rebalance.sessions.interval_ms(draft.group, member, effects),
            assignment=assignment if wants_all or member.id in soft.unconfirmed else None,
        )

    def _draft(self, command: ConsumerHeartbeat) -> Draft:
        group = self._state.consumers.get(command.group_id)
        if group is not None:
            return Draft(group)
        classic = self._classic.find(command.group_id)
        if command.member_epoch != JOINING:
            if classic is not None and classic.phase is not ClassicPhase.EMPTY and may_upgrade(self._settings):
                raise unknown_member(command.member_id, command.group_id)  # it may join again; the other is fatal
            raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"There is no consumer group {command.group_id!r}.")
        if classic is None or classic.phase is ClassicPhase.EMPTY:
            return Draft(ConsumerGroup(command.group_id))
        check_upgrade(classic, self._settings)
        return upgraded(classic, self._soft.topics)

    def _end_classic(self, draft: Draft, effects: GroupEffects) -> None:
        """If the group was a classic one until now, end that; those who wait are called to join again."""
        group_id = draft.group.id
        classic = None if group_id in self._state.consumers else self._classic.find(group_id)
        if classic is None:
            return
        for member_id in classic.members:
            if member_id in draft.group.members:
                self._rebalance.sessions.heard_of(group_id, draft.group.members[member_id], effects)
        self._classic.dissolve(group_id, effects)
        if group_id in self._state.classic:
            effects.write(GroupMetadataKey(group_id), None)

    def _member(self, draft: Draft, command: ConsumerHeartbeat) -> ConsumerMember:
        """Find the sender among the members, or make it one; refuse it if it is behind or ahead."""
        member_id = command.member_id or str(command.new_id)
        member = draft.group.members.get(member_id)
        holder = draft.group.static_member(command.instance_id)
        if command.member_epoch == JOINING:
            if holder is not None and holder.id != member_id:
                return self._take_over(draft, holder, member_id)
            if member is None:
                self._check_room(draft.group)
            return member or ConsumerMember(member_id)
        if command.instance_id is not None:
            member = checked_holder(holder, member_id, command.instance_id)
        if member is None:
            raise unknown_member(member_id, draft.group.id)
        check_epoch(member, command.member_epoch, command.topic_partitions)
        return member

    def _take_over(self, draft: Draft, holder: ConsumerMember, member_id: str) -> ConsumerMember:
        if holder.epoch != LEFT_FOR_A_WHILE and not holder.is_classic:
            raise Refusal(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Instance {holder.metadata.instance_id!r} still belongs to member {holder.id!r}.",
            )
        return self._rebalance.replace_static(draft, holder, member_id)

    def _check_room(self, group: ConsumerGroup) -> None:
        size_max = self._settings.group_consumer_max_size
        if len(group.members) >= size_max:
            raise Refusal(
                ErrorCode.GROUP_MAX_SIZE_REACHED, f"Consumer group {group.id!r} has {size_max} members and is full."
            )

    # ---- leave

    def _leave(self, command: ConsumerHeartbeat, effects: GroupEffects) -> ConsumerHeartbeatReply:
        draft = self._draft(command)
        member = draft.group.members.get(command.member_id)
        if command.instance_id is not None:
            holder = draft.group.static_member(command.instance_id)
            member = checked_holder(holder, command.member_id, command.instance_id)
        if member is None:
            raise unknown_member(command.member_id, draft.group.id)
        if command.member_epoch == LEFT_FOR_A_WHILE:
            self._rebalance.place(draft, left_for_a_while(member, LEFT_FOR_A_WHILE), effects)
            self._rebalance.sessions.away(draft.group.id, member.id, effects)
        else:
            self.remove(draft, [member.id], effects)
        draft.hand_over(effects.facts)
        return ConsumerHeartbeatReply(member_id=command.member_id, member_epoch=command.member_epoch)

    def remove(self, draft: Draft, member_ids: list[str], effects: GroupEffects) -> None:
        """Take members out; if only those are left that speak the classic protocol, the group is theirs again."""
        rest = {each.id: each for each in draft.group.members.values() if each.id not in member_ids}
        if self.is_for_classic(rest):
            self.downgrade(draft, replace(draft.group, members=rest), effects)
            return
        self._rebalance.remove(draft, member_ids, effects)
        if not rest:
            self._rebalance.sessions.dissolve(draft.group)

    def is_for_classic(self, members: Mapping[str, ConsumerMember]) -> bool:
        """Return whether a group of these members is to be a classic one."""
        fits = 0 < len(members) <= self._settings.group_max_size and may_downgrade(self._settings)
        return fits and all(member.is_classic for member in members.values())

    def downgrade(self, draft: Draft, group: ConsumerGroup, effects: GroupEffects) -> None:
        """Make a classic group of what the draft has come to; its members are called to join."""
        classic = downgraded(group, self._soft.topics, effects.now.wall_ms)
        self._rebalance.sessions.dissolve(draft.group)
        for key in list(draft.group.tombstones()):
            draft.write(key, None)
        draft.hand_over(effects.facts)
        self._classic.adopt(classic, effects)


def _says_all(command: ConsumerHeartbeat) -> bool:
    subscribes = command.subscribed_topic_names is not None or command.subscribed_topic_regex is not None
    return subscribes and command.rebalance_timeout_ms != -1 and command.topic_partitions is not None


def without_epochs(owned: Owned) -> Partitions:
    """Return partitions alone."""
    return {topic: frozenset(epochs) for topic, epochs in owned.items()}


def _metadata(member: ConsumerMember, command: ConsumerHeartbeat) -> ConsumerGroupMemberMetadataValue:
    """Return what a member says of itself now; what it leaves out is as it was."""
    old, names, pattern = member.metadata, command.subscribed_topic_names, command.subscribed_topic_regex
    return ConsumerGroupMemberMetadataValue(
        instance_id=old.instance_id if command.instance_id is None else command.instance_id,
        rack_id=old.rack_id if command.rack_id is None else command.rack_id,
        client_id=command.client.id,
        client_host=command.client.host,
        subscribed_topic_names=old.subscribed_topic_names if names is None else tuple(sorted(set(names))),
        subscribed_topic_regex=old.subscribed_topic_regex if pattern is None else pattern or None,
        rebalance_timeout_ms=(
            old.rebalance_timeout_ms if command.rebalance_timeout_ms == -1 else command.rebalance_timeout_ms
        ),
        server_assignor=old.server_assignor if command.server_assignor is None else command.server_assignor,
    )
