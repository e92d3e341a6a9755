"""WebHDFS, request by request, as Spark's client sends them."""

import asyncio
import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import pytest

from riverlog.checkpoints.current_store import CurrentStore
from riverlog.checkpoints.files import webhdfs
from riverlog.checkpoints.files.webhdfs import WebHdfsHandler
from riverlog.checkpoints.limits import CHECKPOINT_CHUNK_BYTES, CHECKPOINT_UPLOAD_REST_SECONDS
from riverlog.observe.web_guard import WebGuard
from tests.support.checkpoints import MemoryTopic, memory_store
from tests.support.virtual_time import run

LARGE = bytes(range(256)) * (2 * CHECKPOINT_CHUNK_BYTES // 256)


class Answer(NamedTuple):
    status: int
    headers: dict[bytes, bytes]
    body: bytes

    @property
    def facts(self) -> Any:
        return json.loads(self.body)

    @property
    def exception(self) -> str:
        return str(self.facts["RemoteException"]["exception"])


class Caller:
    """Asks an Edge over a topic in memory."""

    def __init__(self) -> None:
        self.topic = MemoryTopic()
        self.stores = CurrentStore(lambda _: memory_store(self.topic))
        self.edge = WebHdfsHandler(self.stores, WebGuard(["node"]))

    async def ask(
        self,
        method: str,
        target: str,
        parts: Iterable[bytes] = (b"",),
        *,
        whole: bool = True,
        rests: bool = False,
        client: str = "127.0.0.1",
        prefix: str = "/webhdfs/v1",
        headers: Iterable[tuple[bytes, bytes]] = ((b"host", b"node:9870"), (b"riverlog-call", b"test")),
    ) -> Answer:
        """Send one request; a body that is not whole ends with the caller's going, and one that rests never ends."""
        path, _, query = (prefix + target).partition("?")
        bodies = list(parts)
        incoming: list[dict[str, Any]] = [
            {"type": "http.request", "body": body, "more_body": rests or not whole or index < len(bodies) - 1}
            for index, body in enumerate(bodies)
        ]
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            if incoming:
                return incoming.pop(0)
            if whole:
                await asyncio.Event().wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": method,
            "client": (client, 40_000),
            "scheme": "http",
            "server": ("127.0.0.1", 9870),
            "raw_path": path.encode("latin-1"),
            "query_string": query.encode("latin-1"),
            "headers": list(headers),
        }
        await self.edge(scope, receive, send)
        if not sent:
            return Answer(0, {}, b"")
        headers = dict(sent[0]["headers"])
        body = b"".join(message["body"] for message in sent[1:])
        assert b"content-type" not in headers
        assert int(headers[b"content-length"]) == len(body)
        return Answer(sent[0]["status"], headers, body)

    async def create(self, path: str, *parts: bytes, **how: Any) -> Answer:
        first = await self.ask("PUT", f"{path}?op=CREATE&overwrite=true&user.name=ada")
        assert first.status == 307
        target = first.headers[b"location"].decode().removeprefix("http://node:9870/webhdfs/v1")
        return await self.ask("PUT", target, parts or (b"",), **how)

    async def open(self, path: str, more: str = "") -> Answer:
        first = await self.ask("GET", f"{path}?op=OPEN{more}")
        if first.status != 307:
            return first
        return await self.ask("GET", first.headers[b"location"].decode().removeprefix("http://node:9870/webhdfs/v1"))


@pytest.fixture
def caller() -> Caller:
    return Caller()


async def test_a_file_of_the_offset_log_from_its_creation_to_its_end(caller: Caller) -> None:
    assert (await caller.ask("PUT", "/p/offsets?op=MKDIRS")).facts == {"boolean": True}
    missing = await caller.ask("GET", "/p/offsets/1?op=GETFILESTATUS")
    assert (missing.status, missing.exception) == (404, "FileNotFoundException")
    assert missing.facts["RemoteException"]["javaClassName"] == "java.io.FileNotFoundException"
    assert await caller.create("/p/offsets/.1.u.tmp", b"v1\n", b"{}") == Answer(201, {b"content-length": b"0"}, b"")
    for _ in range(2):
        renamed = await caller.ask("PUT", "/p/offsets/.1.u.tmp?op=RENAME&destination=/p/offsets/1")
        assert renamed.facts == {"boolean": True}
    status = (await caller.ask("GET", "/p/offsets/1?op=GETFILESTATUS")).facts["FileStatus"]
    assert (status["type"], status["length"], status["owner"]) == ("FILE", 5, "ada")
    assert status["pathSuffix"] == ""
    assert (await caller.open("/p/offsets/1")).body == b"v1\n{}"
    assert (await caller.open("/p/offsets/1", "&offset=3&length=1")).body == b"{"
    listed = (await caller.ask("GET", "/p/offsets?op=LISTSTATUS")).facts["FileStatuses"]["FileStatus"]
    assert [each["pathSuffix"] for each in listed] == ["1"]
    assert (await caller.ask("DELETE", "/p/offsets/1?op=DELETE&recursive=true")).facts == {"boolean": True}
    assert (await caller.ask("DELETE", "/p/offsets/1?op=DELETE")).facts == {"boolean": False}


async def test_rename_says_no_in_both_of_its_ways(caller: Caller) -> None:
    for number in (1, 2):
        await caller.create(f"/p/.{number}.tmp", b"%d" % number)
    rename = "?op=RENAME&destination=/p/1"
    assert (await caller.ask("PUT", f"/p/.1.tmp{rename}&renameoptions=NONE")).body == b""
    assert (await caller.ask("PUT", f"/p/.1.tmp{rename}&renameoptions=NONE")).status == 200
    assert (await caller.ask("PUT", f"/p/.2.tmp{rename}")).facts == {"boolean": False}
    assert (await caller.ask("PUT", f"/p/.3.tmp{rename}")).facts == {"boolean": False}
    refused = await caller.ask("PUT", f"/p/.2.tmp{rename}&renameoptions=NONE")
    assert (refused.status, refused.exception) == (403, "FileAlreadyExistsException")
    missing = await caller.ask("PUT", f"/p/.3.tmp{rename}&renameoptions=OVERWRITE")
    assert (missing.status, missing.exception) == (404, "FileNotFoundException")
    assert (await caller.open("/p/1")).body == b"1"
    assert (await caller.ask("PUT", f"/p/.2.tmp{rename}&renameoptions=OVERWRITE")).status == 200
    assert (await caller.open("/p/1")).body == b"2"


async def test_large_files_pass_through_in_parts(caller: Caller) -> None:
    parts = [LARGE[start : start + 65_536] for start in range(0, len(LARGE), 65_536)]
    assert (await caller.create("/p/a.sst", *parts)).status == 201
    assert (await caller.open("/p/a.sst")).body == LARGE
    assert (await caller.open("/p/a.sst", f"&offset={CHECKPOINT_CHUNK_BYTES - 2}&length=4")).body == b"\xfe\xff\x00\x01"
    assert (await caller.open("/p/a.sst", f"&offset={len(LARGE)}")).body == b""
    assert (await caller.open("/p/a.sst", f"&offset={len(LARGE) + 1}")).status == 403


async def test_half_a_body_leaves_nothing(caller: Caller) -> None:
    gone = await caller.create("/p/a.sst", LARGE, whole=False)
    assert gone.status == 0
    assert (await caller.ask("GET", "/p?op=GETFILESTATUS")).status == 404
    assert caller.topic.chunk_owners() == set()


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("GET", "/p?op=NOSUCH", 400),
        ("GET", "/p", 400),
        ("POST", "/p?op=MKDIRS", 400),
        ("GET", "/a/../b?op=GETFILESTATUS", 400),
        ("GET", "/a/%2e%2e/b?op=GETFILESTATUS", 400),
        ("GET", "/a%00?op=GETFILESTATUS", 400),
        ("GET", "/%ff?op=GETFILESTATUS", 400),
        ("GET", "/" + "a" * 5_000 + "?op=GETFILESTATUS", 400),
        ("GET", "/p?op=GETFILESTATUS" + "&a=b" * 40, 400),
        ("GET", "/p?op=GETFILESTATUS&a=%ff", 400),
        ("GET", "/p/1?op=OPEN&offset=-1", 400),
        ("GET", "/p/1?op=OPEN&offset=99999999999999999999", 400),
        ("GET", "/p/1?op=OPEN&length=x", 400),
        ("PUT", "/p/2?op=CREATE&overwrite=perhaps", 400),
        ("PUT", "/p/1?op=RENAME", 400),
        ("PUT", "/p/1?op=RENAME&destination=p", 400),
        ("PUT", "/p/1?op=RENAME&destination=/p/2&renameoptions=TO_TRASH", 400),
        ("PUT", "/p/1?op=RENAME&destination=/p/2", 403),
        ("PUT", "/p/1?op=CREATE", 403),
        ("PUT", "/p/1/2?op=CREATE", 403),
        ("PUT", "/p/1?op=MKDIRS", 403),
        ("GET", "/p?op=OPEN", 404),
        ("DELETE", "/p?op=DELETE", 403),
        ("DELETE", "/?op=DELETE&recursive=true", 403),
    ],
)
async def test_what_cannot_be_done_is_a_remote_exception(caller: Caller, method: str, target: str, status: int) -> None:
    await caller.create("/p/1", b"one")
    answer = await caller.ask(method, target)
    assert answer.status == status, answer
    assert answer.exception.endswith("Exception")
    assert (await caller.open("/p/1")).body == b"one"


async def test_elsewhere_there_is_nothing(caller: Caller) -> None:
    assert (await caller.ask("GET", "/", prefix="")).status == 404
    assert (await caller.ask("GET", "x/p?op=LISTSTATUS")).status == 404
    assert (await caller.ask("GET", "?op=LISTSTATUS")).status == 200
    assert caller.topic.writer == 1


async def test_what_the_other_file_manager_asks_for(caller: Caller) -> None:
    assert (await caller.ask("GET", "/?op=GETHOMEDIRECTORY&user.name=ada")).facts == {"Path": "/user/ada"}
    assert "blockSize" in (await caller.ask("GET", "/?op=GETSERVERDEFAULTS")).facts["FsServerDefaults"]
    folder = (await caller.ask("GET", "/?op=GETFILELINKSTATUS")).facts["FileStatus"]
    assert (folder["type"], folder["permission"]) == ("DIRECTORY", "755")


async def test_too_many_requests_are_told_to_come_again(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhdfs, "CHECKPOINT_REQUESTS_MAX", 0)
    assert (await caller.ask("GET", "/?op=LISTSTATUS")).exception == "SafeModeException"
    monkeypatch.undo()
    assert (await caller.ask("GET", "/?op=LISTSTATUS")).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        [(b"host", b"evil.example:9870")],
        [(b"host", b"node:9870"), (b"origin", b"https://evil.example")],
        [(b"host", b"node:9870"), (b"origin", b"null")],
        [(b"host", b"node:9870"), (b"sec-fetch-site", b"cross-site")],
        [(b"host", b"node:9870"), (b"sec-fetch-site", b"same-site"), (b"riverlog-call", b"x")],
    ],
)
def test_what_a_web_page_sends_is_refused_before_the_store_is_opened(
    caller: Caller, headers: list[tuple[bytes, bytes]]
) -> None:
    async def scenario() -> None:
        for method, target, prefix in (
            ("GET", "/?op=LISTSTATUS", "/webhdfs/v1"),
            ("DELETE", "/p?op=DELETE&recursive=true", "/webhdfs/v1"),
            ("PUT", "/p?op=MKDIRS", "/webhdfs/v1"),
            ("OPTIONS", "/p?op=MKDIRS", "/webhdfs/v1"),
            ("GET", "/?op=LIST", "/riverlog/v1"),
            ("POST", "/p?op=RESET", "/riverlog/v1"),
        ):
            answer = await caller.ask(method, target, prefix=prefix, headers=headers)
            assert (answer.status, answer.exception) == (403, "AccessControlException")
            assert not any(name.startswith(b"access-control") for name in answer.headers)
        assert caller.stores.opened is None

    run(scenario())


@pytest.mark.parametrize("operation", ["CLUSTER", "BEGIN", "ANNOUNCE", "ABORT", "PROGRESS", "STOP", "RESET"])
async def test_a_call_without_our_header_is_refused(caller: Caller, operation: str) -> None:
    answer = await caller.ask(
        "POST", f"/p?op={operation}", [b"{}"], prefix="/riverlog/v1", headers=[(b"host", b"127.0.0.1:9870")]
    )
    assert (answer.status, answer.exception) == (403, "AccessControlException")
    assert "Riverlog-Call" in answer.facts["RemoteException"]["message"]
    assert caller.stores.opened is None


async def test_uploads_that_rest_make_room_and_lock_nobody_out(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("riverlog.checkpoints.files.webhdfs.CHECKPOINT_REQUESTS_MAX", 4)

    def rest(name: str, client: str) -> "asyncio.Task[Answer]":
        return asyncio.create_task(caller.create(f"/p/{name}", b"half", rests=True, client=client))

    (await caller.ask("PUT", "/p?op=MKDIRS"))
    others = [rest("other", "host-1")]
    await asyncio.sleep(1)
    many = [rest(f"many-{number}", "host-2") for number in range(3)]
    await asyncio.sleep(1)
    refused = await caller.ask("GET", "/p?op=GETFILESTATUS")
    assert (refused.status, refused.exception) == (403, "SafeModeException")  # nobody has rested for long
    await asyncio.sleep(CHECKPOINT_UPLOAD_REST_SECONDS)
    assert (await caller.ask("GET", "/p?op=GETFILESTATUS")).status == 200
    gone = await many[0]
    assert (gone.status, gone.exception) == (403, "SafeModeException")
    assert gone.headers[b"connection"] == b"close"
    assert not any(task.done() for task in (*others, *many[1:]))
    assert (await caller.create("/p/whole", b"all")).status == 201
    assert (await caller.ask("GET", "/p?op=LISTSTATUS")).facts["FileStatuses"]["FileStatus"][0]["pathSuffix"] == "whole"
    for task in (*others, *many):
        task.cancel()
    await asyncio.wait([*others, *many])
    await caller.stores.close()
