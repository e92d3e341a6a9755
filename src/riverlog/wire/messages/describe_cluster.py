"""DescribeCluster: the cluster's id, its controller and its brokers."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.metadata import OPERATIONS_NOT_ASKED_FOR
from riverlog.wire.types import array, boolean, int8, int16, int32, message, string, struct

ENDPOINT_BROKERS = 1
ENDPOINT_CONTROLLERS = 2


@message(ApiKey.DESCRIBE_CLUSTER)
class DescribeClusterRequest:
    """Ask for the cluster's brokers or controllers."""

    include_cluster_authorized_operations: bool = boolean()
    endpoint_type: int = int8(since=1, default=ENDPOINT_BROKERS)
    include_fenced_brokers: bool = boolean(since=2)


@struct
class DescribeClusterBroker:
    """A broker and the address to reach it at."""

    broker_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable_since=0)
    is_fenced: bool = boolean(since=2)


@message(ApiKey.DESCRIBE_CLUSTER)
class DescribeClusterResponse:
    """The cluster."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    endpoint_type: int = int8(since=1, default=ENDPOINT_BROKERS)
    cluster_id: str = string()
    controller_id: int = int32(default=-1)
    brokers: list[DescribeClusterBroker] = array(DescribeClusterBroker)
    cluster_authorized_operations: int = int32(default=OPERATIONS_NOT_ASKED_FOR)
