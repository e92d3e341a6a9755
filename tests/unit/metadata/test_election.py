"""Who leads, and what a record says of it: the cases of KIP-966, KIP-455 and KIP-704."""

from dataclasses import fields
from typing import Any
from uuid import UUID

import pytest

from riverlog.metadata.election import Election, Target, partition_change
from riverlog.metadata.image import LeaderRecoveryState, PartitionImage, RareState
from riverlog.metadata.leader_rules import LeaderRules
from riverlog.metadata.records import PartitionChangeRecord
from riverlog.model.ids import LeaderEpoch, NodeId

A, B = UUID(int=0xA), UUID(int=0xB)
PLAIN = LeaderRules(2, unclean=False, keeps_eligible=False)
ELIGIBLE = LeaderRules(2, unclean=False, keeps_eligible=True)
UNCLEAN = LeaderRules(2, unclean=True, keeps_eligible=False)
RECOVERING = LeaderRecoveryState.RECOVERING


class Present:
    """The brokers that are there."""

    def __init__(self, *node_ids: int) -> None:
        self._node_ids = node_ids

    def can_lead(self, node_id: NodeId, partition: PartitionImage) -> bool:
        return node_id in self._node_ids


def ids(*node_ids: int) -> tuple[NodeId, ...]:
    return tuple(NodeId(each) for each in node_ids)


def partition(
    isr: tuple[NodeId, ...], leader: int, replicas: tuple[NodeId, ...] = ids(1, 2, 3), **rare: Any
) -> PartitionImage:
    return PartitionImage(0, replicas, isr, NodeId(leader), LeaderEpoch(5), 9, (A,) * len(replicas), RareState(**rare))


def said(record: PartitionChangeRecord | None) -> dict[str, object] | None:
    """Return what a record names."""
    if record is None:
        return None
    unsaid = PartitionChangeRecord(partition_id=0, topic_id=A)
    values = {each.name: getattr(record, each.name) for each in fields(record)}
    return {name: value for name, value in values.items() if value != getattr(unsaid, name)}


CASES = {
    "nothing changes": (partition(ids(1, 2, 3), 1), Target(), PLAIN, (1, 2, 3), None),
    "the leader goes": (partition(ids(1, 2, 3), 1), Target(ids(2, 3)), PLAIN, (2, 3), {"isr": (2, 3), "leader": 2}),
    "a follower goes": (partition(ids(1, 2, 3), 1), Target(ids(1, 2)), PLAIN, (1, 2), {"isr": (1, 2)}),
    "by the order of replicas, not of the in-sync set": (
        partition(ids(3, 2, 1), 1),
        Target(ids(3, 2)),
        PLAIN,
        (2, 3),
        {"isr": (3, 2), "leader": 2},
    ),
    "the last one stays in sync": (partition(ids(1), 1), Target(()), PLAIN, (2, 3), {"leader": -1}),
    "and leads again": (partition(ids(1), -1), Target(), PLAIN, (1, 2), {"leader": 1}),
    "anybody, where that is allowed": (
        partition(ids(1), 1),
        Target(()),
        UNCLEAN,
        (3,),
        {"isr": (3,), "leader": 3, "leader_recovery_state": RECOVERING},
    ),
    "whoever leaves a small set is eligible": (
        partition(ids(1, 2), 1),
        Target(ids(1)),
        ELIGIBLE,
        (1,),
        {"isr": (1,), "eligible_leader_replicas": (2,)},
    ),
    "the last one is eligible too": (
        partition(ids(1), 1, eligible_leader_replicas=ids(2)),
        Target(()),
        ELIGIBLE,
        (),
        {"isr": (), "leader": -1, "eligible_leader_replicas": (1, 2), "last_known_elr": (1,)},
    ),
    "an eligible one leads": (
        partition((), -1, eligible_leader_replicas=ids(1, 2), last_known_elr=ids(1)),
        Target(),
        ELIGIBLE,
        (2, 3),
        {"isr": (2,), "leader": 2, "eligible_leader_replicas": (1,), "last_known_elr": ()},
    ),
    "an eligible one leads, and commits without the others": (
        partition((), -1, eligible_leader_replicas=ids(1, 2)),
        Target(),
        LeaderRules(1, unclean=False, keeps_eligible=True),
        (2, 3),
        {"isr": (2,), "leader": 2, "eligible_leader_replicas": ()},
    ),
    "who led last, when nobody is eligible": (
        partition((), -1, last_known_elr=ids(1)),
        Target(),
        ELIGIBLE,
        (1, 2, 3),
        {"isr": (1,), "leader": 1, "last_known_elr": (), "leader_recovery_state": RECOVERING},
    ),
    "but only if it is there": (partition((), -1, last_known_elr=ids(1)), Target(), ELIGIBLE, (2, 3), None),
    "and only if it still is a replica": (
        partition((), -1, ids(1, 2), adding_replicas=ids(2), last_known_elr=ids(2)),
        Target(replicas=ids(1), adding=()),
        ELIGIBLE,
        (1, 2),
        {"leader": -1, "replicas": (1,), "adding_replicas": (), "directories": (A,)},
    ),
    "nobody is eligible beside enough in sync": (
        partition(ids(1), 1, eligible_leader_replicas=ids(2, 3)),
        Target(ids(1, 2)),
        ELIGIBLE,
        (1, 2),
        {"isr": (1, 2), "eligible_leader_replicas": ()},
    ),
    "nor where there are no more replicas": (
        partition(ids(1, 2), 1, ids(1, 2, 3), eligible_leader_replicas=ids(3)),
        Target(),
        LeaderRules(7, unclean=False, keeps_eligible=True),
        (1, 2),
        None,
    ),
    "than are in sync": (
        partition(ids(1, 2), 1, ids(1, 2), eligible_leader_replicas=ids(2)),
        Target(),
        LeaderRules(7, unclean=False, keeps_eligible=True),
        (1, 2),
        {"eligible_leader_replicas": ()},
    ),
    "eligible ones are forgotten where the cluster has none": (
        partition(ids(1), 1, eligible_leader_replicas=ids(2)),
        Target(),
        PLAIN,
        (1,),
        {"eligible_leader_replicas": ()},
    ),
    "a leader has recovered": (
        partition(ids(1), 1, leader_recovery_state=RECOVERING),
        Target(recovery=LeaderRecoveryState.RECOVERED),
        PLAIN,
        (1,),
        {"leader_recovery_state": 0},
    ),
    "a reassignment begins": (
        partition(ids(1, 2, 3), 1),
        Target(replicas=ids(4, 1, 2, 3), adding=ids(4), removing=ids(3)),
        PLAIN,
        (1, 2, 3, 4),
        {"replicas": (4, 1, 2, 3), "adding_replicas": (4,), "removing_replicas": (3,), "directories": (B, A, A, A)},
    ),
    "and ends once all that are added are in sync": (
        partition(ids(1, 2, 3), 1, ids(4, 2, 1), adding_replicas=ids(4), removing_replicas=ids(1)),
        Target(ids(1, 2, 4)),
        PLAIN,
        (1, 2, 4),
        {
            "isr": (2, 4),
            "leader": 4,
            "replicas": (4, 2),
            "adding_replicas": (),
            "removing_replicas": (),
            "directories": (A, A),
        },
    ),
    "the leader stays, and begins a new epoch without those that go": (
        partition(ids(1, 2, 3), 1, ids(1, 2, 3), removing_replicas=ids(3)),
        Target(),
        PLAIN,
        (1, 2, 3),
        {"isr": (1, 2), "leader": 1, "replicas": (1, 2), "removing_replicas": (), "directories": (A, A)},
    ),
    "it goes on until then": (
        partition(ids(1, 3), 1, ids(4, 1, 3), adding_replicas=ids(4), removing_replicas=ids(3)),
        Target(ids(1)),
        PLAIN,
        (1, 3, 4),
        {"isr": (1,)},
    ),
}


@pytest.mark.parametrize(("before", "target", "rules", "present", "expected"), CASES.values(), ids=CASES)
def test_what_is_decided(
    before: PartitionImage,
    target: Target,
    rules: LeaderRules,
    present: tuple[int, ...],
    expected: dict[str, object] | None,
) -> None:
    record = partition_change(A, before, target, rules, Present(*present), directory_of=lambda _node_id: B)
    assert said(record) == expected


def test_a_preferred_leader_is_the_first_replica_if_it_is_in_sync() -> None:
    for isr, expected in ((ids(3, 1), {"leader": 1}), (ids(3, 2), None)):
        record = partition_change(A, partition(isr, 3), Target(), PLAIN, Present(1, 2, 3), election=Election.PREFERRED)
        assert said(record) == expected


def test_who_may_have_lost_records_is_not_eligible() -> None:
    before = partition(ids(1), 1, eligible_leader_replicas=ids(2))
    record = partition_change(A, before, Target(()), ELIGIBLE, Present(), forgetful=ids(1))
    assert said(record) == {"isr": (), "leader": -1, "last_known_elr": (1,)}
    before = partition(ids(1), 1, eligible_leader_replicas=ids(2))
    record = partition_change(A, before, Target(ids(1)), ELIGIBLE, Present(1), forgetful=ids(2))
    assert said(record) == {"eligible_leader_replicas": ()}


def test_a_directory_is_set_beside_its_replica() -> None:
    before = partition(ids(1, 2, 3), 1)
    record = partition_change(A, before, Target(directories={NodeId(2): B}), PLAIN, Present(1, 2, 3))
    assert said(record) == {"directories": (A, B, A)}
