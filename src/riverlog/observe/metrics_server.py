"""The HTTP server of metrics and health: GET /metrics, /health and /ready, and nothing else.

As much HTTP/1.1 as three read-only routes need; docs/adr/0004-a-small-door-for-metrics.md says why no framework.
A request's head, its time and the number of connections are bounded, so nobody can hold the node through this
server; what a web page may have sent is refused. `/health` answers as long as the loop turns; `/ready` is 503 with the
reason while clients cannot be served.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final, NamedTuple

from riverlog.model.ids import Address
from riverlog.model.limits import HTTP_IDLE_SECONDS_MAX
from riverlog.model.ports import Workers
from riverlog.observe.containment import contained
from riverlog.observe.exposition import CONTENT_TYPE, render
from riverlog.observe.limits import HTTP_CONNECTIONS_MAX, HTTP_REQUEST_BYTES_MAX, HTTP_SECONDS_MAX
from riverlog.observe.loop_lag import measure_loop_lag
from riverlog.observe.metrics import scrape
from riverlog.observe.samples import MetricsSource
from riverlog.observe.web_guard import WebGuard


class MetricsServer:
    """Listens on one address and answers about one node."""

    def __init__(
        self,
        source: MetricsSource,
        not_ready: Callable[[], str | None],
        workers: Workers,
        guard: WebGuard,
        *,
        version: str,
    ) -> None:
        """Serve the metrics of a source; `not_ready` returns in one sentence why its clients cannot be served now."""
        self._source = source
        self._not_ready = not_ready
        self._guard = guard
        self._workers = workers
        self._version = version
        self._routes: dict[str, Callable[[], Awaitable[_Answer]]] = {
            "/metrics": self._metrics,
            "/health": self._health,
            "/ready": self._ready,
        }
        self._server: asyncio.Server | None = None
        self._conversations: set[asyncio.Task[None]] = set()
        self._measuring: asyncio.Task[None] | None = None

    async def open(self, host: str, port: int) -> Address:
        """Listen and return the address; port 0 takes a free one, a busy port is an OSError."""
        assert self._server is None
        self._server = await asyncio.start_server(self.accepted, host, port, limit=HTTP_REQUEST_BYTES_MAX)
        self._measuring = asyncio.get_running_loop().create_task(measure_loop_lag(self._source.stats.loop_lag))
        return Address(*self._server.sockets[0].getsockname()[:2])

    async def close(self) -> None:
        """Stop listening and end all conversations."""
        if self._server is None:
            return
        self._server.close()
        if self._measuring is not None:
            self._measuring.cancel()
        for conversation in self._conversations:
            conversation.cancel()
        if self._conversations:
            await asyncio.wait(self._conversations)
        await self._server.wait_closed()

    def accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Begin to answer on one connection, unless there are too many."""
        if len(self._conversations) >= HTTP_CONNECTIONS_MAX:
            writer.transport.abort()
            return
        conversation = asyncio.get_running_loop().create_task(self._converse(reader, writer))
        self._conversations.add(conversation)
        conversation.add_done_callback(self._conversations.discard)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer request after request until either side has had enough."""
        writer.transport.set_write_buffer_limits(high=0)  # drain() then waits until the peer has room for all of it
        try:
            while await self._answer_one(reader, writer):
                pass
        except (OSError, EOFError, TimeoutError, asyncio.CancelledError):
            pass  # the peer is gone or too slow, or the node stops: nobody is left to answer
        finally:
            writer.transport.abort()

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; return whether another may follow on this connection."""
        async with asyncio.timeout(HTTP_IDLE_SECONDS_MAX):
            first = await reader.readexactly(1)
        async with asyncio.timeout(HTTP_SECONDS_MAX):
            request, answer = await self._answer(first, reader)
            writer.write(answer.head(keep=request.keep) + (answer.body if request.with_body else b""))
            await writer.drain()
        return request.keep

    async def _answer(self, first: bytes, reader: asyncio.StreamReader) -> "tuple[_Request, _Answer]":
        try:
            request = _parse(first + await reader.readuntil(b"\r\n\r\n"))
        except asyncio.LimitOverrunError:
            return _UNREADABLE, _text(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "The head of the request is too long."
            )
        except ValueError as wrong:
            return _UNREADABLE, _text(HTTPStatus.BAD_REQUEST, str(wrong))
        if (reason := self._guard.refusal(request.headers)) is not None:
            return request, _text(HTTPStatus.FORBIDDEN, f"{reason[0].upper()}{reason[1:]}.")
        if request.method not in ("GET", "HEAD"):
            return request, _text(HTTPStatus.METHOD_NOT_ALLOWED, "Only GET and HEAD work here.", allow="GET, HEAD")
        route = self._routes.get(request.path)
        if route is None:
            return request, _text(HTTPStatus.NOT_FOUND, f"There is {', '.join(self._routes)}, and nothing else.")
        try:
            return request, await route()
        except Exception as error:
            contained(f"GET {request.path}", error)
            return request, _text(HTTPStatus.INTERNAL_SERVER_ERROR, "This failed; the node's log says why.")

    async def _metrics(self) -> "_Answer":
        taken = await scrape(self._source, version=self._version)
        return _Answer(HTTPStatus.OK, CONTENT_TYPE, await self._workers.run(lambda: render(taken)))

    async def _health(self) -> "_Answer":
        who = {"node_id": self._source.node_id, "cluster_id": self._source.cluster_id, "version": self._version}
        return _json(HTTPStatus.OK, {"status": "alive", **who})

    async def _ready(self) -> "_Answer":
        reason = self._not_ready()
        if reason is None:
            return _json(HTTPStatus.OK, {"status": "ready"})
        return _json(HTTPStatus.SERVICE_UNAVAILABLE, {"status": "not ready", "reason": reason})


class _Request(NamedTuple):
    method: str
    path: str
    keep: bool
    headers: list[tuple[bytes, bytes]]
    """Names in lower case, as often as they came."""

    @property
    def with_body(self) -> bool:
        return self.method != "HEAD"


class _Answer(NamedTuple):
    status: HTTPStatus
    content_type: str
    body: bytes
    allow: str | None = None

    def head(self, *, keep: bool) -> bytes:
        """Write the status line and the headers."""
        lines = [
            f"HTTP/1.1 {self.status} {self.status.phrase}",
            f"Content-Type: {self.content_type}",
            f"Content-Length: {len(self.body)}",
            "Cache-Control: no-store",
            f"Date: {time.strftime('%a, %d %b %Y %H:%M:%S GMT', time.gmtime())}",
            f"Connection: {'keep-alive' if keep else 'close'}",
        ]
        if self.allow is not None:
            lines.append(f"Allow: {self.allow}")
        return "\r\n".join([*lines, "\r\n"]).encode("ascii")


_UNREADABLE: Final = _Request("GET", "", keep=False, headers=[])


def _parse(head: bytes) -> _Request:
    """Read the head of a request; ValueError with one sentence where it is not one that we take."""
    line, *fields = head.decode("latin-1").split("\r\n")[:-2]
    words = line.split(" ")
    if len(words) != 3 or words[2] not in ("HTTP/1.0", "HTTP/1.1"):
        raise ValueError("This is not a request in HTTP/1.1.")
    method, target, protocol = words
    headers: dict[str, str] = {}
    listed: list[tuple[bytes, bytes]] = []
    for field in fields:
        name, colon, value = field.partition(":")
        if not colon:
            raise ValueError("A header has no colon.")
        headers[name.lower()] = value.strip().lower()
        listed.append((name.lower().encode("latin-1"), value.strip().encode("latin-1")))
    if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
        raise ValueError("A request with a body is not taken here.")
    keep = protocol == "HTTP/1.1" and headers.get("connection") != "close"
    return _Request(method, target.partition("?")[0], keep, listed)


def _text(status: HTTPStatus, sentence: str, *, allow: str | None = None) -> _Answer:
    return _Answer(status, "text/plain; charset=utf-8", f"{sentence}\n".encode(), allow)


def _json(status: HTTPStatus, facts: dict[str, object]) -> _Answer:
    return _Answer(status, "application/json", json.dumps(facts).encode() + b"\n")
