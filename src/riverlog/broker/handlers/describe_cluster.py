"""DescribeCluster: the cluster's id, its brokers, and who controls it."""

from riverlog.broker.requests.availability import Availability
from riverlog.broker.requests.context import Context
from riverlog.model.access import CLUSTER, ResourceType
from riverlog.model.errors import ErrorCode
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
        known = request.endpoint_type == ENDPOINT_CONTROLLERS
        code = ErrorCode.MISMATCHED_ENDPOINT_TYPE if known else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        context.stats.failed(code)
        return DescribeClusterResponse(
            error_code=code, error_message="This is a broker; ask for brokers.", endpoint_type=request.endpoint_type
        )
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
        cluster_authorized_operations=context.operations_allowed(ResourceType.CLUSTER, CLUSTER)
        if request.include_cluster_authorized_operations
        else OPERATIONS_NOT_ASKED_FOR,
    )
