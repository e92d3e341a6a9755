"""ControllerRegistration: a controller says where it listens, and which levels of features it knows."""

from riverlog.broker.requests.context import Context
from riverlog.metadata.commands.controllers import RegisterController
from riverlog.metadata.image import RegisteredEndpoint
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NodeId
from riverlog.wire.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)


async def controller_registration(
    request: ControllerRegistrationRequest, context: Context
) -> ControllerRegistrationResponse:
    """Have the controller registered; the response comes when that is committed."""
    if not context.allows_on_cluster(Operation.CLUSTER_ACTION):
        return _refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, None, context)
    command = RegisterController(
        controller_id=NodeId(request.controller_id),
        incarnation_id=request.incarnation_id,
        endpoints=tuple(
            RegisteredEndpoint(each.name, each.host, each.port, each.security_protocol) for each in request.listeners
        ),
        features={each.name: (each.min_supported_version, each.max_supported_version) for each in request.features},
    )
    try:
        await context.services.controller.submit(command)
    except Refusal as refusal:
        return _refused(refusal.code, refusal.message, context)
    return ControllerRegistrationResponse()


def _refused(code: ErrorCode, message: str | None, context: Context) -> ControllerRegistrationResponse:
    context.stats.failed(code)
    return ControllerRegistrationResponse(error_code=code, error_message=message)
