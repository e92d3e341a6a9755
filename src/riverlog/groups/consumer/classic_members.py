"""Members of a consumer group that speak the classic protocol, while others already speak the consumer protocol.

To the group they are members like all others. To themselves they are followers in a classic group whose generation is
their epoch and whose leader never shows: a Join tells what they have, its answer is their epoch, a Sync gives what they
are to have, and a heartbeat calls them to join again when they have to give up or can get something. No Join waits.
"""

from riverlog.groups.classic.consumer_metadata import (
    CONSUMER_PROTOCOL_TYPE,
    by_id,
    read_subscription,
    write_assignment,
)
from riverlog.groups.commands import (
    NO_MEMBER,
    CodesReply,
    Heartbeat,
    Join,
    JoinReply,
    Leave,
    Leaver,
    Sync,
    SyncReply,
)
from riverlog.groups.consumer.assignors.subscriber import Partitions
from riverlog.groups.consumer.checks import checked_holder, unknown_member
from riverlog.groups.consumer.draft import Draft
from riverlog.groups.consumer.group import ConsumerGroup, ConsumerMember, ConsumerMemberState
from riverlog.groups.consumer.migration import classic_metadata
from riverlog.groups.consumer.protocol import ConsumerProtocol, without_epochs
from riverlog.groups.consumer.rebalance import ConsumerRebalance
from riverlog.groups.effects import GroupEffects
from riverlog.groups.records import ClassicMemberMetadata, ConsumerGroupMemberMetadataValue
from riverlog.groups.soft_state import GroupsSoftState
from riverlog.groups.state import GroupsState
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.machine import Ticket
from riverlog.model.settings import NodeSettings
from riverlog.wire.consumer_protocol import Subscription


class ClassicConsumers:
    """Translates the classic protocol for consumer groups; all state is in what it was given."""

    def __init__(
        self, state: GroupsState, soft: GroupsSoftState, settings: NodeSettings, consumer: ConsumerProtocol
    ) -> None:
        self._state = state
        self._soft = soft
        self._settings = settings
        self._consumer = consumer
        self._rebalance = ConsumerRebalance(soft, settings)

    def join(self, command: Join, ticket: Ticket, effects: GroupEffects) -> None:
        """Take a member in, or let it take its next step; the answer is its epoch."""
        try:
            reply = self._join(command, effects)
        except Refusal as refusal:
            reply = JoinReply(refusal.code, command.member_id)
        effects.answer(ticket, reply)

    def sync(self, command: Sync, ticket: Ticket, effects: GroupEffects) -> None:
        """Hand a member what it is to have."""
        try:
            reply = self._sync(command, effects)
        except Refusal as refusal:
            reply = SyncReply(refusal.code)
        effects.answer(ticket, reply)

    def heartbeat(self, command: Heartbeat, ticket: Ticket, effects: GroupEffects) -> None:
        """Begin the member's session anew, and call it to join if it can take a step."""
        try:
            group = self._state.consumers[command.group_id]
            member = _member(group, command.member_id, command.group_instance_id, command.generation_id)
            self._rebalance.sessions.heard_of(group.id, member, effects)
            code = ErrorCode.NONE
            if _can_step(group, member):
                self._rebalance.sessions.called(group.id, member, effects)
                code = ErrorCode.REBALANCE_IN_PROGRESS
        except Refusal as refusal:
            code = refusal.code
        effects.answer(ticket, code)

    def leave(self, command: Leave, ticket: Ticket, effects: GroupEffects) -> None:
        """Remove members."""
        draft = Draft(self._state.consumers[command.group_id])
        codes: list[ErrorCode] = []
        leaving: list[str] = []
        for leaver in command.members:
            try:
                member_id = _leaver(draft.group, leaver)
            except Refusal as refusal:
                codes.append(refusal.code)
                continue
            codes.append(ErrorCode.UNKNOWN_MEMBER_ID if member_id in leaving else ErrorCode.NONE)
            if member_id not in leaving:
                leaving.append(member_id)
        if leaving:
            self._consumer.remove(draft, leaving, effects)
            draft.hand_over(effects.facts)
        effects.answer(ticket, CodesReply(codes=tuple(codes)))

    def _join(self, command: Join, effects: GroupEffects) -> JoinReply:
        draft = Draft(self._state.consumers[command.group_id])
        subscription = self._checked(draft.group, command)
        holder = draft.group.static_member(command.group_instance_id)
        if command.member_id == NO_MEMBER and command.group_instance_id is None and command.needs_known_id:
            return JoinReply(ErrorCode.MEMBER_ID_REQUIRED, command.new_member_id)
        if command.member_id != NO_MEMBER and command.group_instance_id is not None:
            checked_holder(holder, command.member_id, command.group_instance_id)
        member_id = command.member_id or command.new_member_id
        if holder is not None and holder.id != member_id:
            self._rebalance.replace_static(draft, holder, member_id)
        metadata = ConsumerGroupMemberMetadataValue(
            instance_id=command.group_instance_id,
            rack_id=subscription.rack_id or None,
            client_id=command.client.id,
            client_host=command.client.host,
            subscribed_topic_names=tuple(sorted(set(subscription.topics))),
            rebalance_timeout_ms=command.rebalance_timeout_ms,
            classic_member_metadata=classic_metadata(command.session_timeout_ms, command.protocols),
        )
        resubscribed = self._rebalance.subscribe(draft, member_id, metadata, effects)
        self._rebalance.update(draft, effects, resubscribed=resubscribed)
        has: Partitions = by_id(subscription.owned_partitions, self._soft.topics)
        member = self._rebalance.reconcile(draft, member_id, has, effects, resubscribed=resubscribed)
        if holder is not None and not holder.is_classic and self._consumer.is_for_classic(draft.group.members):
            self._consumer.downgrade(draft, draft.group, effects)
        else:
            draft.hand_over(effects.facts)
            self._rebalance.sessions.heard_of(draft.group.id, member, effects)
            self._rebalance.sessions.synced(draft.group.id, member.id)
            self._rebalance.sessions.called(draft.group.id, member, effects)
        return JoinReply(
            member_id=member.id,
            generation_id=member.epoch,
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            protocol_name=command.protocols[0].name,
        )

    def _checked(self, group: ConsumerGroup, command: Join) -> Subscription:
        """Refuse whoever cannot be a member; give what it subscribes to."""
        settings = self._settings
        shortest, longest = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
        if not shortest <= command.session_timeout_ms <= longest:
            raise Refusal(ErrorCode.INVALID_SESSION_TIMEOUT, "The session is too short or too long.")
        is_known = command.member_id in group.members or command.group_instance_id in group.static_ids
        if not is_known and len(group.members) >= settings.group_consumer_max_size:
            raise Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, "The group is full.")
        subscription = read_subscription(command.protocols[0].metadata) if command.protocols else None
        if settings.group_consumer_migration_policy == "disabled" or subscription is None:
            raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "The group's members speak the consumer protocol.")
        if command.protocol_type != CONSUMER_PROTOCOL_TYPE or not _agrees(group, command):
            raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "The group's members do not offer these protocols.")
        return subscription

    def _sync(self, command: Sync, effects: GroupEffects) -> SyncReply:
        group = self._state.consumers[command.group_id]
        member = _member(group, command.member_id, command.group_instance_id, command.generation_id)
        protocol = _classic(member).supported_protocols[0]
        if command.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE) or command.protocol_name not in (
            None,
            protocol.name,
        ):
            raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "The protocol is not the one that was answered.")
        if group.target_epoch > member.epoch and member.state is not ConsumerMemberState.UNREVOKED:
            self._rebalance.sessions.called(group.id, member, effects)
            raise Refusal(ErrorCode.REBALANCE_IN_PROGRESS, "The member can take another step.")
        self._rebalance.sessions.synced(group.id, member.id)
        self._rebalance.sessions.heard_of(group.id, member, effects)
        assignment = write_assignment(without_epochs(member.assigned), self._soft.topics, protocol.metadata)
        return SyncReply(protocol_type=CONSUMER_PROTOCOL_TYPE, protocol_name=protocol.name, assignment=assignment)


def _member(group: ConsumerGroup, member_id: str, instance_id: str | None, generation_id: int) -> ConsumerMember:
    """Find the sender among the members that speak the classic protocol, in this generation."""
    member = group.members.get(member_id)
    if instance_id is not None:
        member = checked_holder(group.static_member(instance_id), member_id, instance_id)
    if member is None or not member.is_classic:
        raise unknown_member(member_id, group.id)
    if member.epoch != generation_id:
        raise Refusal(ErrorCode.ILLEGAL_GENERATION, f"The member is in generation {member.epoch}.")
    return member


def _leaver(group: ConsumerGroup, leaver: Leaver) -> str:
    if leaver.group_instance_id is None:
        if leaver.member_id not in group.members:
            raise unknown_member(leaver.member_id, group.id)
        return leaver.member_id
    holder = group.static_member(leaver.group_instance_id)
    named = holder.id if holder is not None and leaver.member_id == NO_MEMBER else leaver.member_id
    return checked_holder(holder, named, leaver.group_instance_id).id


def _can_step(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Return whether joining again would move the member on."""
    if member.epoch < group.target_epoch or member.state is ConsumerMemberState.UNREVOKED:
        return True
    missing = (
        (topic, index)
        for topic, indexes in group.target_of(member.id).items()
        for index in indexes
        if index not in member.assigned.get(topic, ())
    )
    return member.state is ConsumerMemberState.UNRELEASED and all(
        partition not in group.owners for partition in missing
    )


def _agrees(group: ConsumerGroup, command: Join) -> bool:
    """Return whether the member offers a protocol that all others offer which speak the classic protocol."""
    others = [each for each in group.members.values() if each.is_classic and each.id != command.member_id]
    offered = [{protocol.name for protocol in _classic(each).supported_protocols} for each in others]
    return any(all(protocol.name in names for names in offered) for protocol in command.protocols)


def _classic(member: ConsumerMember) -> ClassicMemberMetadata:
    metadata = member.metadata.classic_member_metadata
    assert metadata is not None
    return metadata
