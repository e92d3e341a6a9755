"""ElectLeaders: partitions go back to their preferred leader, or to anybody who is there."""

import asyncio
from dataclasses import replace
from typing import Final

from riverlog.broker.requests.context import Context
from riverlog.metadata.commands.leaders import ElectedLeader, ElectLeaders
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

_PREFERRED: Final = 0
_UNCLEAN: Final = 1


async def elect_leaders(request: ElectLeadersRequest, context: Context) -> ElectLeadersResponse:
    """Answer each partition that is named; when all are meant, only those that needed a leader."""
    if not context.allows_on_cluster(Operation.ALTER):
        return _refused(
            Refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Not allowed to hold elections."), request, context
        )
    if request.election_type not in (_PREFERRED, _UNCLEAN):
        unknown = f"There is no election of type {request.election_type}; 0 is preferred, 1 is unclean."
        return _refused(Refusal(ErrorCode.INVALID_REQUEST, unknown), request, context)
    named = request.topic_partitions
    command = ElectLeaders(
        unclean=request.election_type == _UNCLEAN,
        partitions=None if named is None else tuple((each.topic, index) for each in named for index in each.partitions),
    )
    try:
        results = await _elected(command, context)
    except Refusal as refusal:
        return _refused(refusal, request, context)
    topics: dict[str, list[PartitionResult]] = {each.topic: [] for each in named or ()}
    for each in results:
        context.stats.failed(each.outcome.code)
        result = PartitionResult(each.partition, each.outcome.code, each.outcome.message)
        topics.setdefault(each.topic, []).append(result)
    return ElectLeadersResponse(
        replica_election_results=[ReplicaElectionResult(topic, results) for topic, results in topics.items()]
    )


async def _elected(command: ElectLeaders, context: Context) -> list[ElectedLeader]:
    """Have all slices decided, one after the other, so that others get their turn in between."""
    results: list[ElectedLeader] = []
    while True:
        elected = await context.services.controller.submit(command)
        results += elected.results
        if elected.goes_on_behind is None:
            return results
        command = replace(command, behind=elected.goes_on_behind)
        await asyncio.sleep(0)


def _refused(refusal: Refusal, request: ElectLeadersRequest, context: Context) -> ElectLeadersResponse:
    """Refuse it as a whole, and each partition too: version 0 has no other place for the error."""
    context.stats.failed(refusal.code)
    return ElectLeadersResponse(
        error_code=refusal.code,
        replica_election_results=[
            ReplicaElectionResult(
                each.topic, [PartitionResult(index, refusal.code, refusal.message) for index in each.partitions]
            )
            for each in request.topic_partitions or ()
        ],
    )
