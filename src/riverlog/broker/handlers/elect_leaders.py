"""ElectLeaders: a node that is alone leads what it holds, so that there is hardly ever a leader to elect."""

from collections.abc import Iterable
from typing import Final

from riverlog.broker.requests.context import Context
from riverlog.metadata.image import PartitionImage
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)

_PREFERRED: Final = 0
_UNCLEAN: Final = 1


def elect_leaders(request: ElectLeadersRequest, context: Context) -> ElectLeadersResponse:
    """Answer each partition that is named; when all are meant, only those that need a leader."""
    if not context.allows_on_cluster(Operation.ALTER):
        return _refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, request, context)
    if request.election_type not in (_PREFERRED, _UNCLEAN):
        return _refused(ErrorCode.INVALID_REQUEST, request, context)
    if request.topic_partitions is not None:
        return ElectLeadersResponse(replica_election_results=_results(request.topic_partitions, request, context))
    everything = [
        TopicPartitions(topic.name, list(range(topic.partition_count))) for topic in context.image.all_topics()
    ]
    needed = _results(everything, request, context)
    for topic in needed:
        topic.partition_result = [
            each for each in topic.partition_result if each.error_code != ErrorCode.ELECTION_NOT_NEEDED
        ]
    return ElectLeadersResponse(replica_election_results=[topic for topic in needed if topic.partition_result])


def _results(
    asked: Iterable[TopicPartitions], request: ElectLeadersRequest, context: Context
) -> list[ReplicaElectionResult]:
    return [
        ReplicaElectionResult(
            each.topic, [_result(each.topic, index, request.election_type, context) for index in each.partitions]
        )
        for each in asked
    ]


def _result(topic: str, index: int, election_type: int, context: Context) -> PartitionResult:
    known = context.image.topic(topic)
    if known is None or not 0 <= index < known.partition_count:
        refusal = Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {index} of {topic!r}.")
    else:
        refusal = _why_not(known.partition(index), election_type)
    return PartitionResult(index, refusal.code, refusal.message)


def _why_not(partition: PartitionImage, election_type: int) -> Refusal:
    """Return why no election is held: the leader is there, or its disk is not."""
    if partition.leader == partition.replicas[0] or (election_type == _UNCLEAN and partition.leader >= 0):
        return Refusal(ErrorCode.ELECTION_NOT_NEEDED, f"Broker {partition.leader} leads already.")
    if election_type == _PREFERRED:
        return Refusal(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, f"Broker {partition.replicas[0]} is not there.")
    return Refusal(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "No replica is there.")


def _refused(code: ErrorCode, request: ElectLeadersRequest, context: Context) -> ElectLeadersResponse:
    """Refuse it as a whole, and each partition too: version 0 has no other place for the error."""
    context.stats.failed(code)
    return ElectLeadersResponse(
        error_code=code,
        replica_election_results=[
            ReplicaElectionResult(each.topic, [PartitionResult(index, code) for index in each.partitions])
            for each in request.topic_partitions or ()
        ],
    )
