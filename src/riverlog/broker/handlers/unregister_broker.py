"""UnregisterBroker: a broker is gone for good."""

from riverlog.broker.requests.context import Context
from riverlog.metadata.commands.brokers import UnregisterBroker
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NodeId
from riverlog.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


async def unregister_broker(request: UnregisterBrokerRequest, context: Context) -> UnregisterBrokerResponse:
    """Take the broker out; the response comes when that is committed."""
    try:
        if not context.allows_on_cluster(Operation.ALTER):
            raise Refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Not allowed to take brokers out of the cluster.")
        _check_another_stays(NodeId(request.broker_id), context)
        await context.services.controller.submit(UnregisterBroker(NodeId(request.broker_id)))
    except Refusal as refusal:
        context.stats.failed(refusal.code)
        return UnregisterBrokerResponse(error_code=refusal.code, error_message=refusal.message)
    return UnregisterBrokerResponse()


def _check_another_stays(node_id: NodeId, context: Context) -> None:
    """Refuse to take out the only broker while it runs: nobody would be left to serve what the cluster has."""
    brokers = context.image.brokers
    if set(brokers) == {node_id} and brokers[node_id].is_active:
        raise Refusal(
            ErrorCode.INVALID_REQUEST,
            f"Broker {node_id} is the only one of its cluster, and runs; stop it first if it is to go for good.",
        )
