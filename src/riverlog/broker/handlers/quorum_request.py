"""What controllers ask each other, and whoever administers the voters: Raft's own requests, handed to the quorum."""

import asyncio
from typing import Any, Final

from riverlog.broker.requests.context import Context, HandlerResult, Later
from riverlog.controller.quorum_ports import NoResponse, Reply
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.raft.exchange.requests import BadRequest, decode_request
from riverlog.raft.exchange.responses import encode_refusal, encode_response
from riverlog.raft.limits import SNAPSHOT_CHUNK_BYTES
from riverlog.raft.messages import FetchRequest, FetchSnapshotRequest
from riverlog.wire.apis import ApiKey
from riverlog.wire.types import key_of

_CHANGES_VOTERS: Final = (ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER)


def quorum_request(message: Any, context: Context) -> HandlerResult[Any]:
    """Hand a request to the quorum now; the response comes when it has one."""
    operation = Operation.ALTER if key_of(type(message)) in _CHANGES_VOTERS else Operation.CLUSTER_ACTION
    if not context.allows_on_cluster(operation):
        return _refused(message, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, context)
    try:
        request = decode_request(message, context.services.cluster_id)
    except BadRequest as refused:
        return _refused(message, refused.error, context)
    try:
        reply = context.services.controller.quorum.ask(request)
    except NoResponse:
        return _refused(message, ErrorCode.BROKER_NOT_AVAILABLE, context)
    reads = isinstance(request, FetchRequest | FetchSnapshotRequest)
    return Later(_response(message, reply, context), SNAPSHOT_CHUNK_BYTES if reads else 0)


async def _response(message: Any, reply: "asyncio.Future[Reply]", context: Context) -> Any:
    try:
        response, content = await reply
    except NoResponse:
        return _refused(message, ErrorCode.BROKER_NOT_AVAILABLE, context)
    context.stats.failed(response.leadership.error)
    return encode_response(message, response, content)


def _refused(message: Any, code: ErrorCode, context: Context) -> Any:
    context.stats.failed(code)
    return encode_refusal(message, code)
