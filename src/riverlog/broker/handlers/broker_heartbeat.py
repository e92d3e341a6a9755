"""BrokerHeartbeat: a broker lives, says how far it has come, and hears whether it is fenced or may stop."""

from riverlog.broker.requests.context import Context, HandlerResult, Later
from riverlog.metadata.commands.liveness import BrokerHeartbeat
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NodeId
from riverlog.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse


def broker_heartbeat(request: BrokerHeartbeatRequest, context: Context) -> HandlerResult[BrokerHeartbeatResponse]:
    """Hear the broker now, whenever the response comes."""
    if not context.allows_on_cluster(Operation.CLUSTER_ACTION):
        return _refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, context)
    context.client.broker = (NodeId(request.broker_id), request.broker_epoch)
    return Later(_heard(request, context))


async def _heard(request: BrokerHeartbeatRequest, context: Context) -> BrokerHeartbeatResponse:
    controller, cordoned = context.services.controller, request.cordoned_log_dirs
    command = BrokerHeartbeat(
        node_id=NodeId(request.broker_id),
        epoch=request.broker_epoch,
        current_metadata_offset=request.current_metadata_offset,
        next_offset=controller.next_offset,
        want_fence=request.want_fence,
        want_shut_down=request.want_shut_down,
        offline_log_dirs=tuple(request.offline_log_dirs),
        cordoned_log_dirs=None if cordoned is None else tuple(cordoned),
        is_ours=context.client.takes_credits,
    )
    try:
        reply = await controller.submit(command)
    except Refusal as refusal:
        return _refused(refusal.code, context)
    return BrokerHeartbeatResponse(
        is_caught_up=reply.is_caught_up, is_fenced=reply.is_fenced, should_shut_down=reply.should_shut_down
    )


def _refused(code: ErrorCode, context: Context) -> BrokerHeartbeatResponse:
    context.stats.failed(code)
    return BrokerHeartbeatResponse(error_code=code)
