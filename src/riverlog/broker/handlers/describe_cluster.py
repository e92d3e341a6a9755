"""DescribeCluster: the cluster's id, its brokers, and who controls it; on a controller's listener, its controllers."""

from riverlog.broker.requests.availability import Availability
from riverlog.broker.requests.context import Context
from riverlog.model.access import CLUSTER, ResourceType
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_NODE, Address
from riverlog.raft.voters import Voter
from riverlog.wire.messages.describe_cluster import (
    ENDPOINT_BROKERS,
    ENDPOINT_CONTROLLERS,
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from riverlog.wire.messages.metadata import OPERATIONS_NOT_ASKED_FOR


def describe_cluster(request: DescribeClusterRequest, context: Context) -> DescribeClusterResponse:
    """Return each broker's address on the listener that the client came through."""
    if request.endpoint_type != ENDPOINT_BROKERS:
        return _mismatched("This is a broker; ask for brokers.", request, context)
    return DescribeClusterResponse(
        cluster_id=context.services.cluster_id,
        controller_id=Availability(context).controller_id,
        brokers=[
            DescribeClusterBroker(
                broker_id=broker.id,
                host=endpoint.host,
                port=endpoint.port,
                rack=broker.rack,
                is_fenced=broker.fenced,
            )
            for broker in context.image.brokers.values()
            if (endpoint := broker.endpoint(context.client.listener)) is not None
            if request.include_fenced_brokers or not broker.fenced
        ],
        cluster_authorized_operations=_operations(request, context),
    )


def describe_controllers(request: DescribeClusterRequest, context: Context) -> DescribeClusterResponse:
    """Return each voter's address on the listener that the client came through, and who leads them."""
    if request.endpoint_type != ENDPOINT_CONTROLLERS:
        return _mismatched("This is a controller; ask for controllers.", request, context)
    quorum = context.services.controller.quorum
    return DescribeClusterResponse(
        endpoint_type=ENDPOINT_CONTROLLERS,
        cluster_id=context.services.cluster_id,
        controller_id=NO_NODE if quorum.leader_id is None else quorum.leader_id,
        brokers=[
            DescribeClusterBroker(broker_id=voter.key.id, host=address.host, port=address.port)
            for voter in quorum.voters
            if (address := _address(voter, context)) is not None
        ],
        cluster_authorized_operations=_operations(request, context),
    )


def _address(voter: Voter, context: Context) -> Address | None:
    """Return where a voter listens, as the quorum knows it, or its registration does."""
    listener = context.client.listener
    registered = context.image.controllers.get(voter.key.id)
    known = [(each.listener, each.address) for each in voter.endpoints]
    known += [(each.listener, Address(each.host, each.port)) for each in registered.endpoints] if registered else []
    return next((address for name, address in known if name == listener), None)


def _mismatched(why: str, request: DescribeClusterRequest, context: Context) -> DescribeClusterResponse:
    known = request.endpoint_type in (ENDPOINT_BROKERS, ENDPOINT_CONTROLLERS)
    code = ErrorCode.MISMATCHED_ENDPOINT_TYPE if known else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
    context.stats.failed(code)
    return DescribeClusterResponse(error_code=code, error_message=why, endpoint_type=request.endpoint_type)


def _operations(request: DescribeClusterRequest, context: Context) -> int:
    if not request.include_cluster_authorized_operations:
        return OPERATIONS_NOT_ASKED_FOR
    return context.operations_allowed(ResourceType.CLUSTER, CLUSTER)
