"""From a frame to its handler and back to bytes.

One table row per served API; the row knows the version range, the handler and the counters. What a client may
not send at all (an unknown API or version, bytes that are no message) raises `Unserved` or `MalformedMessage`,
and the connection ends: there is no answer that such a client could read.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from riverlog.broker.requests.context import (
    Client,
    Context,
    ControllerServices,
    Hangup,
    Later,
    Parts,
    PendingResponse,
    Services,
)
from riverlog.broker.requests.forwarded import FORWARDED
from riverlog.broker.requests.portions import PORTIONED, fitted, folded, in_portions, is_large, kind_of
from riverlog.model.errors import ErrorCode
from riverlog.observe.stats import NodeStats, RequestStats
from riverlog.wire.apis import Api, ApiKey
from riverlog.wire.codec import decode
from riverlog.wire.framing import LENGTH
from riverlog.wire.headers import RequestHeader, decode_request_header, encode_response, with_window
from riverlog.wire.types import fields_of

Handler = Callable[[Any, Context], Any]
ShortCut = Callable[[memoryview, int, RequestHeader, Context], PendingResponse | None]
"""Does the commonest form of a request without building messages; None, with nothing done, for every other form."""
HandlerLoader = Callable[[ApiKey], tuple[Handler, ShortCut | None]]


class Unserved(Exception):
    """The client asked for something that this node does not speak."""


@dataclass(frozen=True, slots=True)
class ServedApi:
    """One served API."""

    api: Api
    handler: Handler
    short_cut: ShortCut | None
    holds_line: bool
    in_portions: bool
    forwards: bool
    """Whether the active controller answers it, wherever that is."""
    stats: RequestStats
    lowest: int
    highest: int


class Promise(PendingResponse):
    """An answer still to come: what is awaited, and how its result becomes bytes."""

    __slots__ = ("_client", "_header", "_row", "answer_bytes_max", "awaited", "holds_line")

    def __init__(
        self,
        row: ServedApi,
        header: RequestHeader,
        client: Client,
        awaited: Awaitable[object],
        answer_bytes_max: int = 0,
    ) -> None:
        super().__init__()
        self.answer_bytes_max = answer_bytes_max
        self._row = row
        self._header = header
        self._client = client
        self.awaited = asyncio.ensure_future(awaited)
        self.holds_line = row.holds_line

    def abandon(self) -> None:
        super().abandon()
        self.awaited.cancel()

    def encode(self) -> Parts:
        """Return the response's bytes, none where no response is wanted; raises what the awaited part raised."""
        response = self.awaited.result()
        if response is None:
            return []
        api, version = self._row.api, self._header.api_version
        parts = encode_response(api, version, self._header.correlation_id, response)
        return told(self._client, api, version, parts) if self._client.takes_credits else parts

    def answer_bug(self) -> Parts:
        """Return the answer after a mistake of our own, as the dispatcher does."""
        return _server_error(self._row.api, self._header)


class ForwardedPromise(Promise):
    """The answer of the active controller, still to come; it is handed on as it is."""

    __slots__ = ()

    def __init__(self, row: ServedApi, header: RequestHeader, client: Client, awaited: Awaitable[bytes]) -> None:
        super().__init__(row, header, client, awaited)
        self.holds_line = True

    def encode(self) -> Parts:
        response = self.awaited.result()
        assert isinstance(response, bytes)
        return [LENGTH.pack(len(response)), response]


class Dispatcher:
    """The table of served APIs, and the way from a frame to an answer."""

    def __init__(
        self,
        served: Iterable[Api],
        load: HandlerLoader,
        services: ControllerServices,
        stats: NodeStats,
    ) -> None:
        """Build the table. What serves brokers' APIs is given a broker's services."""
        self._served = {int(api.key): api for api in served}
        self._load = load
        self._services = cast("Services", services)
        self._authorizer = services.authorizer
        self._stats = stats
        self._rows: dict[int, ServedApi] = {}  # of the APIs that were asked for so far

    def dispatch(self, frame: memoryview, client: Client) -> tuple[RequestStats, PendingResponse | None]:
        """Do a request's ordered work, and give the pending of its answer, which may be there already."""
        routes = client.routes
        if routes.head_bytes < len(frame):
            kind, correlation_id, head = routes.take_apart(frame)
            route = routes.known.get(head)
            if route is not None and route.kind == kind and routes.rules == self._authorizer.version:
                pending = route.take(frame, routes.head_bytes, correlation_id)
                if pending is not None:
                    return route.stats, pending
        return self._dispatch_new(frame, client)

    def _dispatch_new(self, frame: memoryview, client: Client) -> tuple[RequestStats, PendingResponse | None]:
        """Take a request apart that this client did not send a moment ago."""
        header, position = decode_request_header(frame)
        row = self._rows.get(header.api_key) or self._row(header.api_key)
        version = header.api_version
        if not row.lowest <= version <= row.highest:
            return row.stats, PendingResponse(self._refuse_version(row, header, client))
        context = Context(
            self._services,
            client,
            client_id=header.client_id,
            correlation_id=header.correlation_id,
            version=version,
            stats=row.stats,
        )
        if row.forwards and self._services.forward is not None and not self._services.controller.is_active:
            forwarded = self._services.forward(frame, client.principal)
            return row.stats, ForwardedPromise(row, header, client, forwarded)
        if row.short_cut is not None:
            pending = row.short_cut(frame, position, header, context)
            if pending is not None:
                return row.stats, pending
        request, _ = decode(row.api.request, version, frame, position)
        if row.in_portions:
            kind = kind_of(row.api.key, version)
            request = folded(request, kind)
            kind = fitted(kind, request, context)
            if is_large(request, kind):
                handle = partial(_handle, row, context)
                promise = Promise(row, header, client, in_portions(request, kind, handle, self._services.portions))
                promise.holds_line = True
                return row.stats, promise
        answer = row.handler(request, context)
        if row.holds_line:
            return row.stats, Promise(row, header, client, answer)
        if isinstance(answer, Later):
            promise = Promise(row, header, client, answer.response, answer.answer_bytes_max)
            promise.holds_line = answer.holds_line
            return row.stats, promise
        if answer is None or isinstance(answer, PendingResponse):
            return row.stats, answer
        return row.stats, PendingResponse(encoded(row.api, context, answer))

    def answer_bug(self, frame: memoryview, client: Client) -> tuple[RequestStats, PendingResponse]:
        """Answer a request whose handler has failed by a mistake of our own; Hangup where its answer has no pending for
        that. What it has done so far stands, as after an answer that was lost on its way."""
        header, _ = decode_request_header(frame)
        row = self._row(header.api_key)
        return row.stats, PendingResponse(_server_error(row.api, header))

    def _refuse_version(self, row: ServedApi, header: RequestHeader, client: Client) -> Parts:
        """Answer a client that is newer than us with our range, in the oldest form (KIP-511); only ApiVersions can."""
        if row.api.key is not ApiKey.API_VERSIONS:
            raise Unserved(
                f"{row.api.name} version {header.api_version} is not served here; {row.lowest} to {row.highest} are"
            )
        context = Context(
            self._services, client, client_id=None, correlation_id=header.correlation_id, version=0, stats=row.stats
        )
        return encode_response(row.api, 0, header.correlation_id, row.handler(None, context))

    def _row(self, key: int) -> ServedApi:
        """Complete the table's row for an API that is asked for the first time."""
        api = self._served.get(key)
        if api is None:
            raise Unserved(f"API key {key} is not served here")
        handler, short_cut = self._load(api.key)
        row = self._rows[key] = ServedApi(
            api=api,
            handler=handler,
            short_cut=short_cut,
            holds_line=inspect.iscoroutinefunction(handler),
            in_portions=api.key in PORTIONED,
            forwards=api.key in FORWARDED,
            stats=self._stats.of_api(api.name),
            lowest=api.versions.min,
            highest=api.versions.max,
        )
        return row


def _handle(row: ServedApi, context: Context, request: object) -> object:
    return row.handler(request, context)


def _server_error(api: Api, header: RequestHeader) -> Parts:
    """Write UNKNOWN_SERVER_ERROR as the answer to a whole request; Hangup where it can be said of its parts alone."""
    version = header.api_version
    known = {field.name for field in fields_of(api.response) if field.wire.is_in(version)}
    if "error_code" not in known:
        raise Hangup(f"{api.name} failed by an internal error")
    said = {"error_code": ErrorCode.UNKNOWN_SERVER_ERROR}
    return encode_response(api, version, header.correlation_id, api.response(**said))


def encoded(api: Api, context: Context, response: object, correlation_id: int | None = None) -> Parts:
    """Encode the whole response to a request, or to a later one of the same form."""
    correlation_id = context.correlation_id if correlation_id is None else correlation_id
    parts = encode_response(api, context.version, correlation_id, response)
    return told(context.client, api, context.version, parts) if context.client.takes_credits else parts


def told(client: Client, api: Api, version: int, parts: Parts) -> Parts:
    """Add the client's window to a response."""
    return with_window(api, version, parts, client.memory.window_bytes)
