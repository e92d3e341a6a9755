"""Moving partitions, as far as the scenarios leave something out."""

from riverlog.metadata.commands.outcome import Outcome
from riverlog.metadata.commands.reassignments import AlterReassignments, ListReassignments, Reassignment
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NodeId
from tests.unit.metadata.active_cluster import ActiveCluster


def codes(outcomes: tuple[Outcome, ...]) -> list[ErrorCode]:
    return [each.code for each in outcomes]


def test_a_partition_that_is_named_twice_is_moved_nowhere() -> None:
    cluster = ActiveCluster(None, None)
    cluster.create("orders", 2, (1,), (1,))
    to = (NodeId(2),)
    changes = (Reassignment("orders", 0, to), Reassignment("orders", 0, to), Reassignment("orders", 1, to))
    reply = cluster.do(AlterReassignments(changes))
    assert codes(reply.outcomes) == [ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST, ErrorCode.NONE]


def test_those_on_their_way_are_found_by_name_or_all() -> None:
    cluster = ActiveCluster(None, None)
    cluster.create("orders", 3, (1,), (1,), (1,))
    cluster.do(AlterReassignments((Reassignment("orders", 1, (NodeId(2),)),)))
    [(name, partition)] = cluster.do(ListReassignments())
    assert (name, partition.index, partition.replicas) == ("orders", 1, (2, 1))
    named = (("orders", 0), ("orders", 1), ("orders", 9), ("bills", 0))
    assert [each.index for _name, each in cluster.do(ListReassignments(named))] == [1]


def test_as_long_as_nothing_is_replicated_nothing_comes_to_another_broker() -> None:
    cluster = ActiveCluster(None, None, replicas_max=1)
    cluster.create("orders", 2, (1,), (1,))
    changes = tuple(
        Reassignment("orders", index, replicas) for index, replicas in enumerate([(NodeId(2),), (NodeId(1), NodeId(2))])
    )
    reply = cluster.do(AlterReassignments((*changes, Reassignment("orders", 0, (NodeId(1),)))[1:]))
    assert codes(reply.outcomes) == [ErrorCode.INVALID_REPLICATION_FACTOR, ErrorCode.NONE]
    assert codes(cluster.do(AlterReassignments(changes)).outcomes) == [ErrorCode.INVALID_REPLICATION_FACTOR] * 2


def test_a_move_may_be_called_off_before_anything_has_come() -> None:
    cluster = ActiveCluster(None, None)
    cluster.create("orders", 1, (1,))
    before = cluster.partition("orders")
    cluster.do(AlterReassignments((Reassignment("orders", 0, (NodeId(2),)),)))
    cluster.do(AlterReassignments((Reassignment("orders", 0, None),)))
    now = cluster.partition("orders")
    assert now.replicas == before.replicas
    assert now.directories == before.directories
    assert not now.is_reassigning
    assert now.leader_epoch == before.leader_epoch + 1, (
        "nobody takes a fetch of the one that was to come for a replica's"
    )
