"""BrokerRegistration: a broker joins the cluster, fenced until it has caught up."""

from riverlog.broker.requests.context import Context
from riverlog.metadata.commands.brokers import RegisterBroker
from riverlog.metadata.image import RegisteredEndpoint
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NodeId
from riverlog.observe.logging import get_logger
from riverlog.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse


async def broker_registration(request: BrokerRegistrationRequest, context: Context) -> BrokerRegistrationResponse:
    """Have the broker registered; the response comes when that is committed."""
    if not context.allows_on_cluster(Operation.CLUSTER_ACTION):
        return _refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, context)
    if request.cluster_id != context.services.cluster_id:
        return _refused(ErrorCode.INCONSISTENT_CLUSTER_ID, context)
    if request.broker_id < 0:
        return _refused(ErrorCode.INVALID_REQUEST, context)
    controller = context.services.controller
    command = RegisterBroker(
        node_id=NodeId(request.broker_id),
        incarnation_id=request.incarnation_id,
        endpoints=tuple(
            RegisteredEndpoint(each.name, each.host, each.port, each.security_protocol) for each in request.listeners
        ),
        features={each.name: (each.min_supported_version, each.max_supported_version) for each in request.features},
        rack=request.rack,
        log_dirs=tuple(request.log_dirs),
        next_offset=controller.next_offset,
        previous_epoch=request.previous_broker_epoch,
        kraft_version=controller.quorum.kraft_version,
    )
    try:
        registered = await controller.submit(command)
    except Refusal as refusal:
        get_logger("riverlog.controller").warning(
            "broker not registered", broker=request.broker_id, detail=refusal.message
        )
        return _refused(refusal.code, context)
    return BrokerRegistrationResponse(broker_epoch=registered.epoch)


def _refused(code: ErrorCode, context: Context) -> BrokerRegistrationResponse:
    context.stats.failed(code)
    return BrokerRegistrationResponse(error_code=code)
