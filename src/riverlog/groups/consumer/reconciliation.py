"""A member's next step towards its target.

                     +------ gave up what it was asked to ------+
                     |                                          v
    STABLE --- has to give up ---> UNREVOKED            has it all: STABLE
       |                                                        ^
       +---- nothing to give up --------------------------------+
                                                                |
                                      others have some of it: UNRELEASED <-+ (asked again)

Giving up comes first and on its own, so that what a member may have never overlaps with what another has. The member
says by the partitions that it reports whether it still has what it was asked to give up; silence means that it has.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final
from uuid import UUID

from riverlog.groups.consumer.assignors.subscriber import Partitions
from riverlog.groups.consumer.group import NOTHING_OWNED, ConsumerMember, ConsumerMemberState, Owned

_NONE: Final[frozenset[int]] = frozenset()


def reconciled(
    member: ConsumerMember,
    *,
    target: Partitions,
    target_epoch: int,
    subscribed: frozenset[UUID],
    reported: Partitions | None,
    owners: Mapping[tuple[UUID, int], str],
) -> ConsumerMember:
    """Return the member as it stands after one more step; the same one if it cannot take a step."""
    if member.state is ConsumerMemberState.UNREVOKED and _has_any(reported, member.revoking):
        return _asked_for_more(member, subscribed)
    # A topic that the member no longer wants is given up at once, even if the target does not know yet.
    wanted = {topic: indexes for topic, indexes in target.items() if topic in subscribed}
    kept = _only(member.assigned, wanted)
    revoking = _without(member.assigned, wanted)
    if revoking and _has_any(reported, revoking):
        return replace(member, state=ConsumerMemberState.UNREVOKED, assigned=kept, revoking=revoking)
    missing = [(topic, index) for topic, indexes in wanted.items() for index in indexes - kept.get(topic, {}).keys()]
    free = [partition for partition in missing if owners.get(partition) in (None, member.id)]
    assigned = {topic: dict(epochs) for topic, epochs in kept.items()}
    for topic, index in free:
        assigned.setdefault(topic, {})[index] = target_epoch
    return replace(
        member,
        state=ConsumerMemberState.STABLE if len(free) == len(missing) else ConsumerMemberState.UNRELEASED,
        epoch=target_epoch,
        # Stays what it was while the epoch does: the member may not have heard of this one yet.
        previous_epoch=member.previous_epoch if member.epoch == target_epoch else member.epoch,
        assigned=assigned,
        revoking=NOTHING_OWNED,
    )


def _asked_for_more(member: ConsumerMember, subscribed: frozenset[UUID]) -> ConsumerMember:
    """Ask a member that is still giving up partitions also for those that it has unsubscribed from meanwhile."""
    dropped = {topic: epochs for topic, epochs in member.assigned.items() if topic not in subscribed}
    if not dropped:
        return member
    kept = {topic: epochs for topic, epochs in member.assigned.items() if topic in subscribed}
    revoking = {
        topic: {**member.revoking.get(topic, {}), **dropped.get(topic, {})}
        for topic in member.revoking.keys() | dropped.keys()
    }
    return replace(member, assigned=kept, revoking=revoking)


def _has_any(reported: Partitions | None, owned: Owned) -> bool:
    """Return whether a member still has any of these partitions, by what it reports."""
    return reported is None or any(not reported.get(topic, _NONE).isdisjoint(owned[topic]) for topic in owned)


def _only(owned: Owned, wanted: Partitions) -> Owned:
    """Return what is owned and wanted."""
    kept = {
        topic: {index: epoch for index, epoch in owned[topic].items() if index in wanted[topic]}
        for topic in owned
        if topic in wanted
    }
    return {topic: epochs for topic, epochs in kept.items() if epochs}


def _without(owned: Owned, wanted: Partitions) -> Owned:
    """Return what is owned and not wanted."""
    rest = {
        topic: {index: epoch for index, epoch in epochs.items() if index not in wanted.get(topic, _NONE)}
        for topic, epochs in owned.items()
    }
    return {topic: epochs for topic, epochs in rest.items() if epochs}
