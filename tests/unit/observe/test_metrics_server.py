"""Three routes, plain answers, and no way to hold the server open."""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from riverlog.observe import metrics_server
from riverlog.observe.limits import HTTP_CONNECTIONS_MAX, HTTP_REQUEST_BYTES_MAX
from riverlog.observe.metrics_server import MetricsServer
from riverlog.observe.web_guard import WebGuard
from tests.unit.observe.source import ScrapedNode

T = TypeVar("T")


class NoThreads:
    """Workers that do the work on the spot."""

    async def run(self, work: Callable[[], T]) -> T:
        return work()


class Visitor:
    """A client at the other end of a pair of sockets."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def ask(self, request: str) -> tuple[int, dict[str, str], bytes]:
        """Send a head as it stands, and give status, headers and body of the answer."""
        self.writer.write(request.replace("\n", "\r\n").encode("latin-1"))
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        line, *fields = head.split("\r\n")[:-2]
        headers = dict(field.split(": ", 1) for field in fields)
        body_bytes = 0 if request.startswith("HEAD") else int(headers["Content-Length"])
        return int(line.split()[1]), headers, await self.reader.readexactly(body_bytes)


async def enter(server: MetricsServer) -> Visitor:
    ours, theirs = socket.socketpair()
    server.accepted(*await asyncio.open_connection(sock=ours, limit=HTTP_REQUEST_BYTES_MAX))
    return Visitor(*await asyncio.open_connection(sock=theirs))


def visit(conversation: Callable[[Visitor, ScrapedNode], Awaitable[T]]) -> T:
    """Run one conversation with a server that shows a node."""

    async def run() -> T:
        node = ScrapedNode()
        server = MetricsServer(node, node.not_ready, NoThreads(), WebGuard(), version="1.2.3")
        visitor = await enter(server)
        try:
            return await conversation(visitor, node)
        finally:
            visitor.writer.close()
            await server.close()

    return asyncio.run(run())


def ask(request: str) -> tuple[int, dict[str, str], bytes]:
    return visit(lambda visitor, _node: visitor.ask(request))


def test_metrics_are_prometheus_text() -> None:
    status, headers, body = ask("GET /metrics HTTP/1.1\nHost: 127.0.0.1:9644\n\n")
    assert status == 200
    assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert b'riverlog_info{version="1.2.3",node_id="1"' in body


def test_health_says_who_is_alive() -> None:
    status, _headers, body = ask("GET /health HTTP/1.1\n\n")
    assert status == 200
    assert json.loads(body) == {
        "status": "alive",
        "node_id": 1,
        "cluster_id": "yXkgtqzSQXqDIHv2CjQ0OA",
        "version": "1.2.3",
    }


def test_ready_gives_the_reason_until_there_is_none() -> None:
    async def conversation(visitor: Visitor, node: ScrapedNode) -> None:
        node.reason_not_ready = "logs are being recovered"
        status, _headers, body = await visitor.ask("GET /ready HTTP/1.1\n\n")
        assert (status, json.loads(body)["reason"]) == (503, "logs are being recovered")
        node.reason_not_ready = None
        status, _headers, body = await visitor.ask("GET /ready HTTP/1.1\n\n")
        assert (status, json.loads(body)) == (200, {"status": "ready"})

    visit(conversation)


def test_head_is_get_without_the_body() -> None:
    status, headers, body = ask("HEAD /metrics HTTP/1.1\n\n")
    assert (status, body) == (200, b"")
    assert int(headers["Content-Length"]) > 1_000


def test_a_query_does_not_change_the_route() -> None:
    assert ask("GET /health?probe=1 HTTP/1.1\n\n")[0] == 200


@pytest.mark.parametrize(
    ("request_head", "status"),
    [
        ("GET /secrets HTTP/1.1\n\n", 404),
        ("POST /metrics HTTP/1.1\nContent-Length: 0\n\n", 405),
        ("POST /metrics HTTP/1.1\nContent-Length: 5\n\n", 400),
        ("GET /metrics HTTP/1.1\nTransfer-Encoding: chunked\n\n", 400),
        ("GET /metrics HTTP/2.0\n\n", 400),
        ("GET  /metrics HTTP/1.1\n\n", 400),
        ("GET /metrics HTTP/1.1\nno colon\n\n", 400),
        ("GET /metrics HTTP/1.1\nHost: evil.example:9644\n\n", 403),
        ("GET /metrics HTTP/1.1\nHost: localhost\nHost: evil.example\n\n", 403),
        ("GET /health HTTP/1.1\nHost: localhost\nOrigin: https://evil.example\n\n", 403),
        ("GET /ready HTTP/1.1\nHost: localhost\nSec-Fetch-Site: cross-site\n\n", 403),
        ("\x00\xff\x80\n\n", 400),
        (f"GET /{'x' * 2 * HTTP_REQUEST_BYTES_MAX} HTTP/1.1\n\n", 431),
    ],
)
def test_what_is_not_served_gets_its_status_and_a_sentence(request_head: str, status: int) -> None:
    got, headers, body = ask(request_head)
    assert got == status
    assert headers["Content-Type"].startswith("text/plain")
    assert body.endswith(b".\n")


@pytest.mark.parametrize(
    ("request_head", "keeps"),
    [
        ("GET /health HTTP/1.1\n\n", True),
        ("GET /health HTTP/1.1\nConnection: Close\n\n", False),
        ("GET /health HTTP/1.0\n\n", False),
        ("nonsense\n\n", False),
    ],
)
def test_the_connection_stays_open_as_the_protocol_says(request_head: str, keeps: bool) -> None:
    async def conversation(visitor: Visitor, _node: ScrapedNode) -> None:
        _status, headers, _body = await visitor.ask(request_head)
        assert headers["Connection"] == ("keep-alive" if keeps else "close")
        if keeps:
            assert (await visitor.ask(request_head))[0] == 200
        else:
            assert await visitor.reader.read() == b""

    visit(conversation)


def test_a_peer_that_never_finishes_its_request_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_server, "HTTP_SECONDS_MAX", 0.0)

    async def conversation(visitor: Visitor, _node: ScrapedNode) -> bytes:
        visitor.writer.write(b"GET /hea")
        return await visitor.reader.read()

    assert visit(conversation) == b""


def test_a_peer_that_never_takes_its_answer_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        node = ScrapedNode()
        stats = node.partition_stats["orders", 0]
        node.partition_stats = {("orders", number): stats for number in range(1_000)}  # more than sockets hold
        server = MetricsServer(node, node.not_ready, NoThreads(), WebGuard(), version="1.2.3")
        visitor = await enter(server)
        visitor.writer.transport.pause_reading()  # type: ignore[attr-defined] # it has this; WriteTransport does not say so
        monkeypatch.setattr(metrics_server, "HTTP_SECONDS_MAX", 0.05)
        visitor.writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
        (conversation,) = server._conversations
        await asyncio.wait_for(conversation, 10)
        visitor.writer.close()
        await server.close()

    asyncio.run(run())


def test_only_so_many_are_heard_at_once() -> None:
    async def run() -> None:
        server = MetricsServer(ScrapedNode(), lambda: None, NoThreads(), WebGuard(), version="1.2.3")
        visitors = [await enter(server) for _ in range(HTTP_CONNECTIONS_MAX)]
        turned_away = await enter(server)
        assert await turned_away.reader.read() == b""
        assert (await visitors[0].ask("GET /health HTTP/1.1\n\n"))[0] == 200
        await server.close()
        for visitor in (*visitors, turned_away):
            visitor.writer.close()

    asyncio.run(run())
