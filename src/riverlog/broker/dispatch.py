"""From a frame to its handler and back to bytes.

One table row per served API; the row knows the version range, the handler and the counters. What a client may
not send at all (an unknown API or version, bytes that are no message) raises `Unserved` or `MalformedMessage`,
and the connection ends: there is no answer that such a client could read.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from riverlog.broker.context import Client, Context, Later, Services, ShortAnswer
from riverlog.model.ports import Buffer, FileRange
from riverlog.observe.stats import NodeStats, RequestStats
from riverlog.wire.apis import Api, ApiKey
from riverlog.wire.codec import decode
from riverlog.wire.headers import RequestHeader, decode_request_header, encode_response, with_window

Parts = list[Buffer | FileRange]
Handler = Callable[[Any, Context], Any]
ShortCut = Callable[[memoryview, int, RequestHeader, Context], ShortAnswer]


class Unserved(Exception):
    """The client asked for something that this node does not speak."""


@dataclass(frozen=True, slots=True)
class Row:
    """One served API."""

    api: Api
    handler: Handler
    short_cut: ShortCut | None
    holds_line: bool
    stats: RequestStats
    lowest: int
    highest: int


class Promise:
    """An answer still to come: what is awaited, and how its result becomes bytes."""

    __slots__ = ("_client", "_header", "_row", "awaited", "holds_line")

    def __init__(self, row: Row, header: RequestHeader, client: Client, awaited: Awaitable[object]) -> None:
        self._row = row
        self._header = header
        self._client = client
        self.awaited = asyncio.ensure_future(awaited)
        self.holds_line = row.holds_line

    def encode(self) -> Parts:
        """Give the answer's bytes, none where no answer is wanted; the awaited part is done. Raises what it raised."""
        response = self.awaited.result()
        if response is None:
            return []
        api, version = self._row.api, self._header.api_version
        parts = encode_response(api, version, self._header.correlation_id, response)
        return _told(self._client, api, version, parts) if self._client.takes_credits else parts


class Dispatcher:
    """The table of served APIs, and the way from a frame to an answer."""

    def __init__(
        self,
        served: Iterable[Api],
        load: Callable[[ApiKey], tuple[Handler, ShortCut | None]],
        services: Services,
        stats: NodeStats,
    ) -> None:
        self._served = {int(api.key): api for api in served}
        self._load = load
        self._services = services
        self._stats = stats
        self._rows: dict[int, Row] = {}  # of the APIs that were asked for so far

    def dispatch(self, frame: memoryview, client: Client) -> tuple[Row, Parts | Promise | None]:
        """Decode a request, do its ordered work, and give its answer or the promise of one."""
        header, position = decode_request_header(frame)
        row = self._rows.get(header.api_key) or self._row(header.api_key)
        version = header.api_version
        if not row.lowest <= version <= row.highest:
            return row, self._refuse_version(row, header, client)
        context = Context(self._services, client, client_id=header.client_id, version=version, stats=row.stats)
        if row.short_cut is not None:
            short = row.short_cut(frame, position, header, context)
            if short is not None:
                if isinstance(short, Later):
                    return row, Promise(row, header, client, short.response)
                return row, _told(client, row.api, version, [short]) if client.takes_credits else [short]
        request, _ = decode(row.api.request, version, frame, position)
        answer = row.handler(request, context)
        if row.holds_line:
            return row, Promise(row, header, client, answer)
        if isinstance(answer, Later):
            return row, Promise(row, header, client, answer.response)
        if answer is None:
            return row, None
        parts = encode_response(row.api, version, header.correlation_id, answer)
        return row, _told(client, row.api, version, parts) if client.takes_credits else parts

    def _refuse_version(self, row: Row, header: RequestHeader, client: Client) -> Parts:
        """Tell a client that is newer than us our range, in the oldest form (KIP-511); only ApiVersions can."""
        if row.api.key is not ApiKey.API_VERSIONS:
            raise Unserved(
                f"{row.api.name} version {header.api_version} is not served here; {row.lowest} to {row.highest} are"
            )
        context = Context(self._services, client, client_id=None, version=0, stats=row.stats)
        return encode_response(row.api, 0, header.correlation_id, row.handler(None, context))

    def _row(self, key: int) -> Row:
        """Complete the table's row for an API that is asked for the first time."""
        api = self._served.get(key)
        if api is None:
            raise Unserved(f"API key {key} is not served here")
        handler, short_cut = self._load(api.key)
        row = self._rows[key] = Row(
            api=api,
            handler=handler,
            short_cut=short_cut,
            holds_line=inspect.iscoroutinefunction(handler),
            stats=self._stats.of_api(api.name),
            lowest=api.versions.min,
            highest=api.versions.max,
        )
        return row


def _told(client: Client, api: Api, version: int, parts: Parts) -> Parts:
    """Tell the client its window along with an answer."""
    return with_window(api, version, parts, client.memory.window_bytes)
