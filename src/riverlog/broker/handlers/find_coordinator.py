"""FindCoordinator: who looks after a group or a transactional id leads its partition of an internal topic.

The first question about a group creates the topic that groups are kept in, the first about a transactional id that of
transactional ids.
"""

from typing import Final

from riverlog.broker.requests.availability import Availability
from riverlog.broker.requests.context import Context, HandlerResult, Later
from riverlog.coordination.groups import GroupCoordinator
from riverlog.coordination.transactions import TransactionCoordinator
from riverlog.groups.commands import Announce
from riverlog.model.access import Operation, ResourceType
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NO_NODE
from riverlog.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

_GROUP: Final = 0
_TRANSACTIONAL_ID: Final = 1
_FIRST_VERSION_WITH_MANY_KEYS: Final = 4

_GUARDS: Final = {
    _GROUP: (ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    _TRANSACTIONAL_ID: (ResourceType.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
}


def find_coordinator(request: FindCoordinatorRequest, context: Context) -> HandlerResult[FindCoordinatorResponse]:
    """Name the coordinator of each key."""
    coordinators = _coordinators(request.key_type, context)
    if request.key_type in _GUARDS and context.image.topic(coordinators.TOPIC) is None:
        return Later(_prepared(request, context, coordinators))
    return _response(request, context)


async def _prepared(
    request: FindCoordinatorRequest, context: Context, coordinators: GroupCoordinator | TransactionCoordinator
) -> FindCoordinatorResponse:
    """Create the topic of coordinators before the first of them is asked for."""
    try:
        await coordinators.ensure_topic()
    except Refusal as refusal:
        return _response(request, context, refusal)
    return _response(request, context)


def _response(
    request: FindCoordinatorRequest, context: Context, trouble: Refusal | None = None
) -> FindCoordinatorResponse:
    availability = Availability(context)
    if context.version >= _FIRST_VERSION_WITH_MANY_KEYS:
        keys = request.coordinator_keys
        found = [_coordinator(key, request.key_type, context, availability, trouble) for key in keys]
        return FindCoordinatorResponse(coordinators=found)
    one = _coordinator(request.key, request.key_type, context, availability, trouble)
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=one.error_message,
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )


def _coordinator(
    key: str, key_type: int, context: Context, availability: Availability, trouble: Refusal | None
) -> Coordinator:
    if key_type not in _GUARDS:
        return _refused(key, ErrorCode.INVALID_REQUEST, f"{key_type} is not a kind of coordinator known here.", context)
    resource, code = _GUARDS[key_type]
    if not context.allows(Operation.DESCRIBE, resource, key):
        return _refused(key, code, f"Not allowed to describe {key!r}.", context)
    if trouble is not None:
        return _refused(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, trouble.message, context)
    coordinators = _coordinators(key_type, context)
    try:
        name = coordinators.partition_of(key)
    except Refusal as refusal:
        return _refused(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, refusal.message, context)
    topic = context.image.topic(name.topic)
    assert topic is not None, "it has a partition for this key"
    leader = topic.partition(name.partition).leader
    found = availability.broker(leader)
    if found is None:
        return _refused(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, f"Nobody leads {name} on this listener.", context)
    if key_type == _GROUP and leader == context.services.node_id:
        _announce(key, context)
    _broker, endpoint = found
    return Coordinator(key=key, node_id=leader, host=endpoint.host, port=endpoint.port)


def _coordinators(key_type: int, context: Context) -> GroupCoordinator | TransactionCoordinator:
    services = context.services
    return services.transactions if key_type == _TRANSACTIONAL_ID else services.groups


def _announce(group_id: str, context: Context) -> None:
    """Announce a likely member to the coordinator, if that is loaded."""
    connection = f"{context.client.principal.host}:{context.client.port}"
    context.services.groups.submit(group_id, Announce(group_id, connection))


def _refused(key: str, code: ErrorCode, message: str, context: Context) -> Coordinator:
    context.stats.failed(code)
    return Coordinator(key=key, node_id=NO_NODE, port=-1, error_code=code, error_message=message)
