"""A checkpoint store from outside, without an event loop: files by WebHDFS, and what it knows about queries."""

import http.client
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from threading import Timer
from types import TracebackType
from typing import Any, Final, NamedTuple, Self
from urllib.parse import quote, urlsplit

from riverlog.checkpoints.files.paths import check_path
from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.pipelines.starts import Start
from riverlog.observe.web_guard import CALL_HEADER

_SECONDS_MAX: Final = 60.0
_PART_BYTES: Final = 256 * 1024
_SILENT_SECONDS: Final = 2.0


class RemoteFile(NamedTuple):
    """A file or folder of a store."""

    path: str
    is_folder: bool
    size: int
    modified_ms: int


class RemoteStore:
    """One connection to a store; OSError where it breaks, RequestRefused where the store says no."""

    def __init__(
        self, address: str, *, seconds_max: float = _SECONDS_MAX, on_silence: Callable[[], None] | None = None
    ) -> None:
        """Take `host:port`, with or without `webhdfs://` before it.

        `on_silence` is called in a thread where the store has not answered for 2 seconds.
        """
        self._on_silence = on_silence
        host = urlsplit(address if "://" in address else f"webhdfs://{address}").netloc
        self._connection = http.client.HTTPConnection(host, timeout=seconds_max)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        self._connection.close()

    @property
    def is_connected(self) -> bool:
        """Return whether there is a connection; the store may have closed it meanwhile."""
        return self._connection.sock is not None

    def walk(self, path: str) -> Iterator[RemoteFile]:
        """Yield all files and folders below a path, folders first; RequestRefused where it is missing."""
        found = self._json("GET", path, "LISTSTATUS")["FileStatuses"]["FileStatus"]
        for each in found:
            below = check_path(f"{path}/{each['pathSuffix']}")
            is_folder = each["type"] == "DIRECTORY"
            yield RemoteFile(below, is_folder, int(each["length"]), int(each["modificationTime"]))
            if is_folder:
                yield from self.walk(below)

    def read(self, path: str) -> Iterator[bytes]:
        """Yield the content of a file, part by part."""
        response = self._exchange("GET", f"{_target(path, 'OPEN')}&data=true", None)
        while part := response.read(_PART_BYTES):
            yield part

    def write(self, path: str, parts: Iterable[bytes]) -> None:
        """Write a file; it is kept when this returns."""
        self._exchange("PUT", f"{_target(path, 'CREATE')}&overwrite=false&data=true", parts).read()

    def make_folder(self, path: str) -> None:
        self._json("PUT", path, "MKDIRS")

    def queries(self) -> list[dict[str, Any]]:
        """Describe every query whose checkpoint is there."""
        found: list[dict[str, Any]] = self.call("GET", "/", "LIST")["pipelines"]
        return found

    def query(self, path: str) -> dict[str, Any]:
        """Describe the query with this checkpoint; RequestRefused where there is none."""
        return self.call("GET", path, "DESCRIBE")

    def report(self, path: str, body: dict[str, Any]) -> bool:
        """Report the progress of a query, as its driver, and return whether it is to stop."""
        return bool(self.call("POST", path, "PROGRESS", body).get("stop"))

    def stop(self, path: str) -> None:
        """Ask the driver of a query to stop it; RequestRefused where nobody reports that it runs."""
        self.call("POST", path, "STOP")

    def reset(self, path: str, start: Start | None, *, force: bool = False) -> None:
        """Reset a query, to begin at a place in its topics; RequestRefused where it runs, or may."""
        body = {"start": None if start is None else start.to_json(), "force": force}
        self.call("POST", path, "RESET", body)

    def call(self, method: str, path: str, operation: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Call one of the operations beside WebHDFS."""
        target = f"/riverlog/v1{quote(path)}?op={operation}"
        return _facts(self._exchange(method, target, None if body is None else json.dumps(body).encode()))

    def _json(self, method: str, path: str, operation: str) -> dict[str, Any]:
        return _facts(self._exchange(method, _target(path, operation), None))

    def _exchange(self, method: str, target: str, body: Iterable[bytes] | bytes | None) -> http.client.HTTPResponse:
        """Send a request whose data flows at once: who knows where it does needs no redirect."""
        chunked = body is not None and not isinstance(body, bytes)
        headers = {CALL_HEADER: "client", **({"Transfer-Encoding": "chunked"} if chunked else {})}
        try:
            with self._noticing():
                if self._connection.sock is None:
                    self._connection.connect()
            self._connection.request(method, target, body, headers, encode_chunked=chunked)
            with self._noticing():
                response = self._connection.getresponse()
        except http.client.RemoteDisconnected as problem:
            self._connection.close()
            raise ConnectionResetError("it closes the connection") from problem
        except http.client.HTTPException as problem:
            self._connection.close()
            raise ConnectionError("it does not speak HTTP") from problem
        except UnicodeError as problem:
            raise ConnectionError("this cannot be the name of a host") from problem
        except OSError:
            self._connection.close()
            raise
        if response.status not in (HTTPStatus.OK, HTTPStatus.CREATED):
            raise _refusal(response)
        return response

    @contextmanager
    def _noticing(self) -> Iterator[None]:
        if self._on_silence is None:
            yield
            return
        timer = Timer(_SILENT_SECONDS, self._on_silence)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


def _target(path: str, operation: str) -> str:
    return f"/webhdfs/v1{quote(path)}?op={operation}"


def _facts(response: http.client.HTTPResponse) -> dict[str, Any]:
    try:
        facts = json.loads(response.read())
    except ValueError:
        raise _not_a_store() from None
    if not isinstance(facts, dict):
        raise _not_a_store()
    return facts


def _not_a_store() -> RequestRefused:
    return RequestRefused(HTTPStatus.BAD_GATEWAY, "java.io.IOException", "this is no checkpoint store")


def _refusal(response: http.client.HTTPResponse) -> RequestRefused:
    body = response.read()
    try:
        problem = json.loads(body)["RemoteException"]
        return RequestRefused(HTTPStatus(response.status), str(problem["javaClassName"]), str(problem["message"]))
    except (ValueError, KeyError, TypeError):
        return _not_a_store()
