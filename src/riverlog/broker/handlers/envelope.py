"""Envelope: a broker hands on what a client asked, and who asked; the active controller answers as if asked itself.

The request is authorised for the client that the broker names, and not for the broker. What changes metadata is refused
whole where this node does not lead, so that the broker asks whoever does.
"""

import inspect
from typing import Any, Final

from riverlog.broker.handlers import load_controller_handler
from riverlog.broker.requests.context import Client, Context, Later
from riverlog.broker.requests.forwarded import FORWARDED
from riverlog.broker.requests.portions import PORTIONED, in_portions, is_large, kind_of
from riverlog.broker.requests.principal import BadPrincipal, decode_principal
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.observe.stats import RequestStats
from riverlog.wire.apis import API_BY_KEY, ApiKey
from riverlog.wire.codec import MalformedMessage, decode, joined
from riverlog.wire.headers import RequestHeader, decode_request_header, encode_response
from riverlog.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse

_OWN_LENGTH: Final = 4  # bytes of a frame's length, which an envelope leaves out
_ASKED_OF_QUORUM: Final = (ApiKey.DESCRIBE_QUORUM, ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER)


async def envelope(request: EnvelopeRequest, context: Context) -> EnvelopeResponse:
    """Answer the request that is in the envelope."""
    if not context.allows_on_cluster(Operation.CLUSTER_ACTION):
        return _refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, context)
    if not context.services.controller.is_active:
        return _refused(ErrorCode.NOT_CONTROLLER, context)
    try:
        principal = decode_principal(request.request_principal, request.client_host_address)
    except BadPrincipal:
        return _refused(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, context)
    frame = memoryview(request.request_data)
    try:
        header, position = decode_request_header(frame)
        api = API_BY_KEY.get(ApiKey(header.api_key)) if header.api_key in FORWARDED else None
        if api is None or header.api_version not in api.versions:
            return _refused(ErrorCode.UNSUPPORTED_VERSION, context)
        message, _ = decode(api.request, header.api_version, frame, position)
    except (MalformedMessage, ValueError):
        return _refused(ErrorCode.INVALID_REQUEST, context)
    asker = Client(principal, context.client.listener, context.client.memory)
    stats = RequestStats(api.name)
    try:
        response = await _answer(api.key, message, header, asker, stats, context)
    except Refusal as refusal:
        return _refused(refusal.code, context)
    for code in stats.errors:
        context.stats.failed(code)
    if _led_until_now(api.key, stats):  # and has done nothing
        return EnvelopeResponse(response_data=None, error_code=ErrorCode.NOT_CONTROLLER)
    parts = encode_response(api, header.api_version, header.correlation_id, response)
    return EnvelopeResponse(response_data=joined(parts)[_OWN_LENGTH:])


async def _answer(
    key: ApiKey, message: Any, header: RequestHeader, asker: Client, stats: RequestStats, context: Context
) -> Any:
    handler, _ = load_controller_handler(key)
    inner = Context(
        context.services,
        asker,
        client_id=header.client_id,
        correlation_id=header.correlation_id,
        version=header.api_version,
        stats=stats,
    )
    if key in PORTIONED:
        kind = kind_of(key, header.api_version)
        if is_large(message, kind):
            return await in_portions(message, kind, lambda portion: handler(portion, inner), context.services.portions)
    answer = handler(message, inner)
    if inspect.isawaitable(answer):
        return await answer
    return await answer.response if isinstance(answer, Later) else answer


def _led_until_now(key: ApiKey, stats: RequestStats) -> bool:
    """Return whether the answer says that another node has to be asked; the quorum has a word of its own for that."""
    about_quorum = key in _ASKED_OF_QUORUM and ErrorCode.NOT_LEADER_OR_FOLLOWER in stats.errors
    return about_quorum or ErrorCode.NOT_CONTROLLER in stats.errors


def _refused(code: ErrorCode, context: Context) -> EnvelopeResponse:
    context.stats.failed(code)
    return EnvelopeResponse(response_data=None, error_code=code)
