"""FindCoordinator: this node coordinates neither groups nor transactions, and says so.

It must say so rather than leave the API out: librdkafka compresses with lz4 only where this one is advertised.
"""

from typing import Final

from riverlog.broker.context import Context
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_NODE
from riverlog.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

_MESSAGE: Final = "This node offers neither groups nor transactions; assign partitions by hand."
_FIRST_VERSION_WITH_MANY_KEYS: Final = 4


def find_coordinator(request: FindCoordinatorRequest, context: Context) -> FindCoordinatorResponse:
    """Answer that no coordinator is available, for each key."""
    context.stats.failed(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    if context.version < _FIRST_VERSION_WITH_MANY_KEYS:
        return FindCoordinatorResponse(
            error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE, error_message=_MESSAGE, node_id=NO_NODE, port=-1
        )
    return FindCoordinatorResponse(
        coordinators=[
            Coordinator(
                key=key,
                node_id=NO_NODE,
                port=-1,
                error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE,
                error_message=_MESSAGE,
            )
            for key in request.coordinator_keys
        ]
    )
