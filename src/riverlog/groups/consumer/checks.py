"""What a member of a consumer group may say, and who may say it; refusals are Kafka's codes with a sentence each."""

from riverlog.groups.commands import NO_MEMBER, ConsumerHeartbeat
from riverlog.groups.consumer.assignors.subscriber import NO_PARTITIONS, Partitions
from riverlog.groups.consumer.group import JOINING, LEFT, LEFT_FOR_A_WHILE, ConsumerMember, ConsumerMemberState, Owned
from riverlog.groups.consumer.subscriptions import check_pattern
from riverlog.model.errors import ErrorCode, Refusal


def check_heartbeat(command: ConsumerHeartbeat, assignors: tuple[str, ...]) -> None:
    """Refuse a heartbeat that contradicts itself."""
    epoch = command.member_epoch
    needs_id = command.brings_its_id or epoch > JOINING or epoch == LEFT
    _require(command.member_id != NO_MEMBER or not needs_id, "MemberId must not be empty.")
    _require(command.group_id != "", "GroupId must not be empty.")
    _require(command.instance_id != "", "InstanceId must not be empty.")
    _require(command.rack_id != "", "RackId must not be empty.")
    _require(epoch >= LEFT_FOR_A_WHILE, f"MemberEpoch {epoch} is less than -2.")
    _require(
        epoch != LEFT_FOR_A_WHILE or command.instance_id is not None, "Only a member with an InstanceId comes back."
    )
    if epoch == JOINING:
        _require(command.rebalance_timeout_ms != -1, "A member that joins must say its RebalanceTimeoutMs.")
        _require(command.topic_partitions == NO_PARTITIONS, "A member that joins must have no TopicPartitions.")
        subscribes = command.subscribed_topic_names is not None or command.subscribed_topic_regex is not None
        _require(subscribes, "A member that joins must say its SubscribedTopicNames or its SubscribedTopicRegex.")
    if command.server_assignor is not None and command.server_assignor not in assignors:
        raise Refusal(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"There is no assignor {command.server_assignor!r} here; there are {', '.join(assignors)}.",
        )
    if command.subscribed_topic_regex:
        check_pattern(command.subscribed_topic_regex)


def check_epoch(member: ConsumerMember, epoch: int, reported: Partitions | None) -> None:
    """Fence a member that is not where the coordinator knows it to be. An answer that was lost is no reason to.

    Before its epoch grew the member had given up what it had to, so what it has is part of what it is to have.
    """
    if member.state is ConsumerMemberState.UNKNOWN and (reported is None or reported):
        raise Refusal(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The state of member {member.id!r} was written by another version. It must give up all its partitions and "
            "join again.",
        )
    missed_an_answer = epoch == member.previous_epoch and (reported is None or _is_part(reported, member.assigned))
    if epoch > member.epoch or (epoch < member.epoch and not missed_an_answer):
        raise Refusal(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"Member {member.id!r} is in epoch {member.epoch}, not {epoch}. It must give up all its partitions and "
            "join again.",
        )


def checked_holder(holder: ConsumerMember | None, member_id: str, instance_id: str) -> ConsumerMember:
    """Return the member that holds an instance, if that is who asks."""
    if holder is None:
        raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"There is no member with instance {instance_id!r}.")
    if holder.id != member_id:
        raise Refusal(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Instance {instance_id!r} belongs to member {holder.id!r} now, not to {member_id!r}.",
        )
    return holder


def unknown_member(member_id: str, group_id: str) -> Refusal:
    return Refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"{member_id!r} is not a member of group {group_id!r}.")


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise Refusal(ErrorCode.INVALID_REQUEST, message)


def _is_part(reported: Partitions, assigned: Owned) -> bool:
    return all(indexes <= assigned.get(topic, {}).keys() for topic, indexes in reported.items())
