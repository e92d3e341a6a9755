"""WebHDFS as Spark's client speaks it, as an ASGI application: a request in, the store's answer out.

Three habits of that client rule here. An answer never has a Content-Type: the client's own parser of it is missing from
Spark's package. CREATE and OPEN are first answered 307 to ourselves: without it the client has no stream, or drops the
first one. A refusal is a RemoteException, which the client raises again. A body is passed on as it comes; one that
ends early leaves nothing. What a web page may have sent is refused before anything else is looked at.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qsl

from riverlog.checkpoints.current_store import CurrentStore
from riverlog.checkpoints.files.open_uploads import Uploads, made_room
from riverlog.checkpoints.files.paths import ROOT, check_path, parse_path
from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.files.upload import Upload
from riverlog.checkpoints.limits import CHECKPOINT_CALL_BYTES_MAX, CHECKPOINT_REQUESTS_MAX
from riverlog.checkpoints.pipelines.calls import CALLS, read_call
from riverlog.checkpoints.store import Status, Store
from riverlog.observe.web_guard import CALL_HEADER, WebGuard, is_call

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

PREFIX: Final = b"/webhdfs/v1"
CALLS_PREFIX: Final = b"/riverlog/v1"
_FIELDS_MAX: Final = 32
_LENGTH_MAX: Final = 2**63 - 1
_CLOSE: Final = ((b"connection", b"close"),)


class Request:
    """One request: its operation, path and parameters, how to read more of it, and how to answer."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, uploads: Uploads) -> None:
        self.uploads = uploads
        self._scope = scope
        self._receive = receive
        self._send = send
        self.answered = False
        """Whether the answer has begun: then nothing else can be said."""
        self.path = ROOT
        self.is_call = False
        """Whether it is one of the calls beside WebHDFS."""
        self.operation = ""
        self.is_cut = False
        """Whether its body is not waited for any more: the connection ends with the answer."""
        self.parameters: dict[str, str] = {}

    def check(self, guard: WebGuard) -> None:
        """Refuse what a web page may have sent."""
        if (reason := guard.refusal(self._scope["headers"])) is not None:
            raise RequestRefused.foreign(reason)

    def check_call(self) -> None:
        """Refuse a call that changes something and has not the header that no web page can send."""
        if self._scope["method"] != "GET" and not is_call(self._scope["headers"]):
            raise RequestRefused.foreign(f"a call that changes something has the header {CALL_HEADER}, with any value")

    def read(self) -> str:
        """Read path and parameters, and return the operation with its method: `PUT MKDIRS`."""
        raw: bytes = self._scope["raw_path"]
        prefix = next((each for each in (PREFIX, CALLS_PREFIX) if raw == each or raw.startswith(each + b"/")), None)
        if prefix is None:
            raise RequestRefused.missing("there is /webhdfs/v1 here, and nothing else")
        self.is_call = prefix == CALLS_PREFIX
        self.path = parse_path(raw[len(prefix) :] or b"/")
        try:
            fields = parse_qsl(
                self._scope["query_string"].decode("ascii"),
                keep_blank_values=True,
                max_num_fields=_FIELDS_MAX,
                errors="strict",
            )
        except (UnicodeError, ValueError):
            raise RequestRefused.illegal("the parameters cannot be read") from None
        self.parameters = {name.lower(): value for name, value in reversed(fields)}
        self.operation = f"{self._scope['method']} {self.parameters.get('op', '').upper()}"
        return self.operation

    def flag(self, name: str, *, default: bool) -> bool:
        text = self.parameters.get(name, str(default)).lower()
        if text not in ("true", "false"):
            raise RequestRefused.illegal(f"{name} is true or false")
        return text == "true"

    def number(self, name: str, default: int) -> int:
        text = self.parameters.get(name, str(default))
        if not text.isascii() or not text.isdigit() or len(text) > 19 or int(text) > _LENGTH_MAX:
            raise RequestRefused.illegal(f"{name} is a number from 0 on")
        return int(text)

    @property
    def client(self) -> str:
        """Return the address that the caller has."""
        peer = self._scope.get("client")
        return "" if peer is None else str(peer[0])

    @property
    def user(self) -> str:
        """Return the name that the caller claims; nobody has proved it."""
        return self.parameters.get("user.name", "")[:256]

    async def more(self) -> tuple[bytes, bool] | None:
        """Return the next part of the body, and whether another follows; None where the caller has gone."""
        message = await self._receive()
        if message["type"] != "http.request":
            return None
        return message.get("body", b""), message.get("more_body", False)

    async def answer(
        self, status: HTTPStatus = HTTPStatus.OK, facts: object = None, headers: Iterable[tuple[bytes, bytes]] = ()
    ) -> None:
        """Answer with facts as JSON, or with nothing."""
        body = b"" if facts is None else json.dumps(facts).encode("ascii")
        await self._begin(status, len(body), headers)
        await self._send({"type": "http.response.body", "body": body})

    async def redirect(self) -> None:
        """Send the caller to ourselves, where the data flows."""
        host = dict(self._scope["headers"]).get(b"host", b"%s:%d" % _named(self._scope["server"]))
        location = b"%s://%s%s?%s&data=true" % (
            self._scope["scheme"].encode("ascii"),
            host,
            self._scope["raw_path"],
            self._scope["query_string"],
        )
        await self.answer(HTTPStatus.TEMPORARY_REDIRECT, headers=[(b"location", location)])

    async def stream(self, length: int, parts: "Any") -> None:
        """Answer with so many bytes as they come; no more are fetched for a caller that has gone."""
        await self._begin(HTTPStatus.OK, length, ())
        gone = asyncio.ensure_future(self._until_gone())
        try:
            async for part in parts:
                if gone.done():
                    return
                await self._send({"type": "http.response.body", "body": part, "more_body": True})
            await self._send({"type": "http.response.body", "body": b""})
        finally:
            gone.cancel()

    async def _until_gone(self) -> None:
        while (await self._receive())["type"] == "http.request":
            pass

    async def _begin(self, status: HTTPStatus, length: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self.answered = True
        head = [(b"content-length", b"%d" % length), *headers]
        await self._send({"type": "http.response.start", "status": int(status), "headers": head})


class WebHdfsHandler:
    """The ASGI application."""

    def __init__(self, stores: CurrentStore, guard: WebGuard) -> None:
        self._stores = stores
        self._guard = guard
        self._under_way = 0
        self._uploads = Uploads()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        request = Request(scope, receive, send, self._uploads)
        self._under_way += 1
        try:
            request.check(self._guard)
            if self._under_way > CHECKPOINT_REQUESTS_MAX and not self._uploads.make_room():
                raise RequestRefused.later("the checkpoint store has too many requests to deal with; try again")
            name = request.read()
            operation = _OPERATIONS.get(name) if not request.is_call else _call if name in CALLS else None
            if operation is None:
                raise RequestRefused.illegal("Spark's checkpoints need no such operation, and this store has none")
            if request.is_call:
                request.check_call()
            await operation(request, await self._stores.current())
        except RequestRefused as problem:
            if request.answered:
                raise
            exception = {"exception": problem.name, "javaClassName": problem.java_class, "message": problem.message}
            await request.answer(problem.status, {"RemoteException": exception}, _CLOSE if request.is_cut else ())
        finally:
            self._under_way -= 1


async def _get_status(request: Request, store: Store) -> None:
    await request.answer(facts={"FileStatus": _json(store.status(request.path))})


async def _list(request: Request, store: Store) -> None:
    entries = [_json(each) for each in store.listing(request.path)]
    await request.answer(facts={"FileStatuses": {"FileStatus": entries}})


async def _make_folder(request: Request, store: Store) -> None:
    await store.make_folder(request.path)
    await request.answer(facts={"boolean": True})


async def _create(request: Request, store: Store) -> None:
    upload = store.upload(request.path, overwrite=request.flag("overwrite", default=False), user=request.user)
    if not request.flag("data", default=False):
        await request.redirect()
        return
    whole = False
    try:
        whole = await _take(request, upload)
    finally:
        if not whole:
            await _discard(upload)
    if whole:
        await request.answer(HTTPStatus.CREATED)


async def _part(request: Request) -> tuple[bytes, bool] | None:
    """Wait for the next part of an upload, unless it has to make room for others."""
    try:
        async with asyncio.timeout(None) as ending:
            with request.uploads.resting(request.client, ending):
                return await request.more()
    except TimeoutError:
        request.is_cut = True
        raise made_room() from None


async def _take(request: Request, upload: Upload) -> bool:
    """Take the body of an upload, and return whether all of it came."""
    while (part := await _part(request)) is not None:
        await upload.write(part[0])
        if not part[1]:
            await upload.finish()
            return True
    return False


async def _open(request: Request, store: Store) -> None:
    file = store.storage.file(request.path)
    offset = request.number("offset", 0)
    if offset > file.facts.size:
        raise RequestRefused.failed(
            f"offset {offset} is behind the end of {request.path}, which has {file.facts.size} bytes"
        )
    length = min(request.number("length", _LENGTH_MAX), file.facts.size - offset)
    if request.flag("data", default=False):
        store.decisions.note_start(request.path)
        await request.stream(length, store.storage.content(file, offset, length))
    else:
        await request.redirect()


async def _rename(request: Request, store: Store) -> None:
    destination = check_path(request.parameters.get("destination", ""))
    options = request.parameters.get("renameoptions")
    if options is None:
        try:
            await store.rename(request.path, destination, overwrite=False)
        except RequestRefused as problem:
            if problem.name not in ("FileNotFoundException", "FileAlreadyExistsException"):
                raise
            await request.answer(facts={"boolean": False})
            return
        await request.answer(facts={"boolean": True})
        return
    chosen = {option.strip().upper() for option in options.split(",")}
    if not chosen <= {"NONE", "OVERWRITE"}:
        raise RequestRefused.illegal("renameoptions are NONE and OVERWRITE")
    await store.rename(request.path, destination, overwrite="OVERWRITE" in chosen)
    await request.answer()


async def _delete(request: Request, store: Store) -> None:
    deleted = await store.delete(request.path, recursive=request.flag("recursive", default=False))
    await request.answer(facts={"boolean": deleted})


async def _get_server_defaults(request: Request, _: Store) -> None:
    await request.answer(facts={"FsServerDefaults": _DEFAULTS})


async def _get_home(request: Request, _: Store) -> None:
    await request.answer(facts={"Path": f"/user/{request.user or 'spark'}"})


async def _call(request: Request, store: Store) -> None:
    body = bytearray()
    while (part := await request.more()) is not None:
        body += part[0]
        if len(body) > CHECKPOINT_CALL_BYTES_MAX:
            raise RequestRefused.illegal(f"a call has at most {CHECKPOINT_CALL_BYTES_MAX} bytes")
        if not part[1]:
            answer = CALLS[request.operation]
            await request.answer(facts=await answer(request.path, read_call(bytes(body)), store))
            return


async def _discard(upload: Any) -> None:
    try:
        await upload.discard()
    except RequestRefused:
        pass  # the store is closing or lost its topic: the next one finds what is left


_OPERATIONS: Final[dict[str, Callable[[Request, Store], Awaitable[None]]]] = {
    "GET GETFILESTATUS": _get_status,
    "GET GETFILELINKSTATUS": _get_status,
    "GET LISTSTATUS": _list,
    "GET OPEN": _open,
    "GET GETSERVERDEFAULTS": _get_server_defaults,
    "GET GETHOMEDIRECTORY": _get_home,
    "PUT MKDIRS": _make_folder,
    "PUT CREATE": _create,
    "PUT RENAME": _rename,
    "DELETE DELETE": _delete,
}

_BLOCK_BYTES: Final = 128 * 1024 * 1024
_DEFAULTS: Final = {
    "blockSize": _BLOCK_BYTES,
    "bytesPerChecksum": 512,
    "checksumType": 2,
    "defaultStoragePolicyId": 7,
    "encryptDataTransfer": False,
    "fileBufferSize": 4096,
    "keyProviderUri": "",
    "replication": 1,
    "trashInterval": 0,
    "writePacketSize": 65536,
}


def _json(status: Status) -> dict[str, object]:
    return {
        "accessTime": 0,
        "blockSize": 0 if status.is_folder else _BLOCK_BYTES,
        "childrenNum": status.children,
        "fileId": 0,
        "group": "supergroup",
        "length": status.size,
        "modificationTime": status.modified_ms,
        "owner": status.user or "spark",
        "pathSuffix": status.name,
        "permission": "755" if status.is_folder else "644",
        "replication": 0 if status.is_folder else 1,
        "storagePolicy": 0,
        "type": "DIRECTORY" if status.is_folder else "FILE",
    }


def _named(server: tuple[str, int]) -> tuple[bytes, int]:
    return server[0].encode("ascii"), server[1]
