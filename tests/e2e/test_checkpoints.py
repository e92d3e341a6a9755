"""Spark's checkpoint store on a real node, spoken to in raw HTTP: what was answered is kept, and half is nothing."""

import http.client
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

import pytest

from riverlog.checkpoints.limits import CHECKPOINT_CHUNK_BYTES
from tests.support.node import Node
from tests.support.waiting import until
from tests.support.webhdfs import WebHdfs

LARGE = Random(7).randbytes(3 * CHECKPOINT_CHUNK_BYTES + 1)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with Node(tmp_path, settings={"metrics.port": "-1"}) as node:
        yield node


def store_of(node: Node) -> WebHdfs:
    return WebHdfs(node.addresses["checkpoints"])


def test_files_outlive_a_clean_stop_and_a_kill(node: Node) -> None:
    def look() -> None:
        with store_of(node) as store:
            assert store.names("/pipelines/orders") == ["a b.sst", "offsets"]
            assert store.open("/pipelines/orders/a b.sst") == LARGE
            assert store.open("/pipelines/orders/offsets/0") == b"v1"
            assert store.rename("/pipelines/orders/offsets/.0.tmp", "/pipelines/orders/offsets/0").facts == {
                "boolean": True
            }

    with store_of(node) as store:
        assert store.ask("PUT", "/pipelines/orders/offsets", "MKDIRS").facts == {"boolean": True}
        assert store.create("/pipelines/orders/a b.sst", LARGE[:70_000], LARGE[70_000:]).status == 201
        assert store.create("/pipelines/orders/offsets/.0.tmp", b"v1").status == 201
        assert store.rename("/pipelines/orders/offsets/.0.tmp", "/pipelines/orders/offsets/0").facts == {
            "boolean": True
        }
    look()
    assert node.stop() == 0
    node.start()
    look()
    node.kill()
    node.start()
    look()


def test_what_was_answered_survives_kills_and_what_was_not_is_whole_or_absent(node: Node) -> None:
    answered: list[int] = []
    ended = threading.Event()

    def write() -> None:
        """Write numbered files, small and large in turn, over every kill; a number whose answer is lost is left out."""
        number = 0
        while not ended.is_set():
            try:
                with store_of(node) as store:
                    while not ended.is_set():
                        number += 1
                        content = b"%d" % number + (LARGE if number % 5 == 0 else b"")
                        made = store.create(f"/p/.{number}.tmp", content)
                        moved = store.rename(f"/p/.{number}.tmp", f"/p/{number}")
                        if made.status == 201 and moved.status == 200 and moved.facts == {"boolean": True}:
                            answered.append(number)
            except (OSError, http.client.HTTPException):
                pass

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(3):
            target = len(answered) + 12
            until(lambda: len(answered) >= target, lambda: f"{len(answered)} files\n{node.log_tail()}")  # noqa: B023
            node.kill()
            node.start()
    finally:
        ended.set()
        writer.join()
    with store_of(node) as store:
        there = {int(name) for name in store.names("/p") if not name.startswith(".")}
        assert set(answered) <= there
        for number in there:
            content = b"%d" % number + (LARGE if number % 5 == 0 else b"")
            assert store.open(f"/p/{number}") == content


def test_a_client_that_dies_in_a_body_leaves_nothing(node: Node) -> None:
    host, port = urlsplit(node.addresses["checkpoints"]).netloc.split(":")
    with socket.create_connection((host, int(port))) as dying:
        dying.sendall(
            b"PUT /webhdfs/v1/p/a.sst?op=CREATE&overwrite=true&data=true HTTP/1.1\r\nHost: [::1]\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n100000\r\n" + LARGE[:0x100000] + b"\r\n5\r\nab"
        )
    with store_of(node) as store:
        assert store.create("/p/b", b"whole").status == 201
        assert store.names("/p") == ["b"]


def test_hostile_bytes_harm_nobody(node: Node) -> None:
    host, port = urlsplit(node.addresses["checkpoints"]).netloc.split(":")
    for attack in (
        b"\x00\x01\x02\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: [::1]\r\n" + b"a: " + b"b" * 100_000,
        b"GET /" + b"a" * 100_000,
        b"PUT /webhdfs/v1/h?op=CREATE&data=true HTTP/1.1\r\nHost: [::1]\r\nContent-Length: -5\r\n\r\n",
        b"PUT /webhdfs/v1/h?op=CREATE&data=true HTTP/1.1\r\nHost: [::1]\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"PUT /webhdfs/v1/h?op=CREATE&data=true HTTP/1.1\r\nHost: [::1]\r\nTransfer-Encoding: chunked\r\n\r\n"
        + b"f" * 40
        + b"\r\n",
        b"PUT /webhdfs/v1/h?op=CREATE&data=true HTTP/1.1\r\nHost: [::1]\r\nContent-Length: 10\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"PUT /webhdfs/v1/../../etc/passwd?op=CREATE&data=true HTTP/1.1\r\nHost: [::1]\r\nContent-Length: 1\r\n\r\na",
        b"GET /webhdfs/v1/%2e%2e/%2e%2e/etc/passwd?op=OPEN HTTP/1.1\r\nHost: [::1]\r\nConnection: close\r\n\r\n",
    ):
        with socket.create_connection((host, int(port)), timeout=30) as attacking:
            attacking.sendall(attack)
            attacking.shutdown(socket.SHUT_WR)
            heard = b""
            try:
                while part := attacking.recv(65_536):
                    heard += part
            except ConnectionResetError:
                pass
            assert b"root:" not in heard
            assert b" 200 " not in heard
    with store_of(node) as store:
        assert store.names("/") in ([], ["h"])  # two lengths in one head: chunks win, as the standard says
        assert store.ask("PUT", "/p", "MKDIRS").status == 200


def test_a_large_file_passes_through_little_memory(node: Node) -> None:
    size, part = 64 * 1024 * 1024, Random(8).randbytes(1024 * 1024)
    with store_of(node) as store:
        store.create("/p/first", b"the store is open")
        before = anonymous_bytes(node)
        assert store.create("/p/a.sst", *([part] * (size // len(part)))).status == 201
        assert store.open("/p/a.sst", offset=size - len(part)) == part
        received = 0
        connection = http.client.HTTPConnection(urlsplit(node.addresses["checkpoints"]).netloc, timeout=60)
        connection.request("GET", "/webhdfs/v1/p/a.sst?op=OPEN&data=true")
        answer = connection.getresponse()
        while block := answer.read(len(part)):
            assert block == part
            received += len(block)
        connection.close()
        assert received == size
        assert anonymous_bytes(node) - before < size // 2


def anonymous_bytes(node: Node) -> int:
    """Return the memory that is the process' own; pages of its files are not."""
    for line in Path(f"/proc/{node.pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no RssAnon")
