"""A sink's calls, to a server that answers what it is told to."""

import json
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, replace
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from riverlog.checkpoints import sink
from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.sink import SinkCalls
from riverlog.client.producer.shared_transactions import Membership, SharedBatch

BATCH = SharedBatch("pipeline:orders", 4_000, 1, "q", 7)
LATER = {"RemoteException": {"javaClassName": RequestRefused.later("").java_class, "message": "try again"}}
REPLACED = {"RemoteException": {"javaClassName": RequestRefused.replaced("").java_class, "message": "replaced"}}


class Server(ThreadingHTTPServer):
    """Answers in turn, and remembers what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: list[tuple[int, Any]] = []
        self.asked: list[tuple[str, Any]] = []
        self.ports: list[int] = []

    @cached_property
    def calls(self) -> SinkCalls:
        return SinkCalls(f"webhdfs://127.0.0.1:{self.server_port}/pipelines/or%20 ders#1")


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.server.ports.append(self.client_address[1])
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append((self.path, json.loads(body)))
        status, facts = self.server.answers.pop(0)
        if status == 0:
            self.close_connection = True  # without an answer
            return
        content = json.dumps(facts).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.calls.close()
        server.shutdown()
        thread.join()


def test_a_batch_is_begun_and_announced(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink, "_PAUSE_SECONDS", 0.0)
    facts = {
        "transactional_id": "pipeline:orders",
        "owner_id": 4_000,
        "owner_epoch": 1,
        "incarnation": "q",
        "number": 7,
    }
    server.answers = [(0, None), (403, LATER), (200, facts), (200, {}), (200, {})]
    who: dict[str, Any] = {"query": "q", "run": "r", "batch": 7}
    assert server.calls.begin(**who) == BATCH
    server.calls.announce(**who, memberships=[Membership((1, 2)), Membership(None)])
    server.calls.abort(**who)
    paths = [path for path, _ in server.asked]
    prefix = "/riverlog/v1/pipelines/or%2520%20ders%231?op="
    assert paths == [f"{prefix}{operation}" for operation in ("BEGIN", "BEGIN", "BEGIN", "ANNOUNCE", "ABORT")]
    assert server.asked[3][1] == {**who, "members": [[1, 2]], "write": ""}


def test_the_batches_of_a_run_have_one_owner_so_the_store_is_asked_once(server: Server) -> None:
    server.answers = [(200, asdict(BATCH))] * 2
    assert server.calls.begun(query="q", run="r", batch=7) is None
    server.calls.begin(query="q", run="r", batch=7)
    assert server.calls.begun(query="q", run="r", batch=8) == replace(BATCH, number=8)
    assert server.calls.begun(query="q", run="another", batch=8) is None
    assert len(server.asked) == 1


def test_a_refusal_is_told_at_once(server: Server) -> None:
    server.answers = [(403, REPLACED)]
    with pytest.raises(RequestRefused, match="replaced") as refused:
        server.calls.announce(query="q", run="r", batch=7, memberships=[])
    assert refused.value.name == "AccessControlException"
    assert len(server.asked) == 1


def test_it_does_not_call_for_ever(server: Server) -> None:
    server.answers = [(403, LATER), (0, None)]
    location = f"webhdfs://127.0.0.1:{server.server_port}/p"
    with closing(SinkCalls(location, seconds_max=-1)) as calls, pytest.raises(RequestRefused, match="try again"):
        calls.begin(query="q", run="r", batch=7)
    with pytest.raises(OSError):  # noqa: PT011 - what an operating system says of a closed connection differs
        SinkCalls(location, seconds_max=-1).begin(query="q", run="r", batch=7)


@pytest.mark.parametrize("location", ["/tmp/checkpoint", "s3://bucket/a", "webhdfs:///a"])
def test_other_locations_have_no_such_calls(location: str) -> None:
    with pytest.raises(ValueError, match="not in a checkpoint store"):
        SinkCalls(location)


def test_a_connection_is_kept_and_one_that_the_store_has_let_go_is_opened_again(server: Server) -> None:
    server.answers = [(200, {}), (200, {}), (0, None), (200, {})]
    for batch in (1, 2, 3):
        server.calls.abort(query="q", run="r", batch=batch)
    assert [call["batch"] for _, call in server.asked] == [1, 2, 3, 3]
    first, second, third, fourth = server.ports
    assert first == second == third != fourth
