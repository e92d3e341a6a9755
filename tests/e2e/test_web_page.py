"""A hostile web page in the developer's browser: what a browser sends for it reaches the node, and does nothing."""

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest

from riverlog.checkpoints.remote import RemoteStore
from tests.support.node import Node
from tests.support.webhdfs import WebHdfs

PATH: Final = "/pipelines/orders"
EVIL: Final = "https://evil.example"
SIMPLE_POST: Final = {"Content-Type": "text/plain;charset=UTF-8", "Accept": "*/*", "User-Agent": "Mozilla/5.0"}
REPORT: Final = {"query": "q", "run": "r", "state": "running", "began_ms": 1}


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with Node(tmp_path) as node:
        with WebHdfs(node.addresses["checkpoints"]) as store:
            store.create(f"{PATH}/offsets/0", b"v1\n{}")
        with RemoteStore(node.addresses["checkpoints"]) as store:
            store.report(PATH, REPORT)
        yield node
        with RemoteStore(node.addresses["checkpoints"]) as store:
            assert store.query(PATH)["state"] == "running"
            assert store.report(PATH, REPORT) is False  # nobody has asked it to stop
        with WebHdfs(node.addresses["checkpoints"]) as store:
            assert store.open(f"{PATH}/offsets/0") == b"v1\n{}"


def visit(address: str, method: str, target: str, headers: dict[str, str], body: bytes | None = None) -> int:
    """Send what a browser sends, and return the status; no answer lets a page read it."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=30)
    try:
        connection.putrequest(method, target, skip_host="Host" in headers)
        for name, value in {**headers, **({} if body is None else {"Content-Length": str(len(body))})}.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        answer.read()
        assert not [name for name, _ in answer.getheaders() if name.lower().startswith("access-control-")]
        return answer.status
    finally:
        connection.close()


@pytest.mark.parametrize(
    "marks",
    [
        {"Origin": EVIL, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
        {"Origin": "null"},
        {"Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-site"},
        {},  # a browser that says nothing about itself
    ],
)
def test_simple_posts_of_a_page_change_nothing(node: Node, marks: dict[str, str]) -> None:
    calls = {
        "RESET": {"force": True},
        "STOP": {},
        "PROGRESS": {**REPORT, "state": "stopped", "ended_ms": 2},
        "BEGIN": {"query": "q", "run": "evil", "batch": 0},
        "ANNOUNCE": {"query": "q", "run": "r", "batch": 0, "members": []},
        "ABORT": {"query": "q", "run": "r", "batch": 0},
    }
    for operation, call in calls.items():
        status = visit(
            node.addresses["checkpoints"],
            "POST",
            f"/riverlog/v1{PATH}?op={operation}",
            {**SIMPLE_POST, **marks},
            json.dumps(call).encode(),
        )
        assert status == 403, operation


def test_a_preflight_is_not_answered_with_leave(node: Node) -> None:
    asked = {
        "Origin": EVIL,
        "Access-Control-Request-Method": "DELETE",
        "Access-Control-Request-Headers": "riverlog-call",
    }
    assert visit(node.addresses["checkpoints"], "OPTIONS", f"/webhdfs/v1{PATH}?op=DELETE", asked) == 403
    assert visit(node.addresses["metrics"], "OPTIONS", "/metrics", asked) == 403


def test_a_page_whose_name_was_made_to_lead_here_reads_and_deletes_nothing(node: Node) -> None:
    for host in ("rebound.evil.example:9870", "localhost.evil.example"):
        own = {"Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin", "Riverlog-Call": "page"}
        for address, method, target in (
            (node.addresses["checkpoints"], "GET", "/webhdfs/v1/?op=LISTSTATUS"),
            (node.addresses["checkpoints"], "GET", f"/webhdfs/v1{PATH}/offsets/0?op=OPEN&data=true"),
            (node.addresses["checkpoints"], "DELETE", f"/webhdfs/v1{PATH}?op=DELETE&recursive=true"),
            (node.addresses["checkpoints"], "GET", "/riverlog/v1/?op=LIST"),
            (node.addresses["checkpoints"], "POST", f"/riverlog/v1{PATH}?op=STOP"),
            (node.addresses["metrics"], "GET", "/metrics"),
            (node.addresses["metrics"], "GET", "/health"),
            (node.addresses["metrics"], "GET", "/ready"),
        ):
            assert visit(address, method, target, own) == 403, target


def test_a_person_with_a_browser_and_a_program_may_look(node: Node) -> None:
    typed = {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "User-Agent": "Mozilla/5.0"}
    assert visit(node.addresses["metrics"], "GET", "/metrics", typed) == 200
    port = urlsplit(node.addresses["checkpoints"]).port
    for host in (f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}", f"192.168.7.7:{port}"):
        assert visit(node.addresses["checkpoints"], "GET", "/webhdfs/v1/?op=LISTSTATUS", {"Host": host}) == 200
