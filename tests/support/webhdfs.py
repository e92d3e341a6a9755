"""Raw HTTP to a node's checkpoint store, as Hadoop's client sends it: redirects followed by hand, bodies in chunks."""

import http.client
import json
from collections.abc import Iterable
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import quote, urlsplit


class Answer(NamedTuple):
    status: int
    body: bytes

    @property
    def facts(self) -> Any:
        return json.loads(self.body)


class WebHdfs:
    """One connection that is kept, and opened again when it broke."""

    def __init__(self, address: str, *, seconds_max: float = 60.0) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=seconds_max)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def ask(
        self, method: str, path: str, operation: str, body: Iterable[bytes] | None = None, **more: object
    ) -> Answer:
        """Send one request, and follow it to where the data flows."""
        query = "".join(f"&{name}={quote(str(value))}" for name, value in more.items())
        return self._send(method, f"/webhdfs/v1{quote(path)}?op={operation}{query}", body)

    def create(self, path: str, *parts: bytes, **more: object) -> Answer:
        return self.ask("PUT", path, "CREATE", parts, **{"overwrite": "true", **more})

    def rename(self, source: str, destination: str, **more: object) -> Answer:
        return self.ask("PUT", source, "RENAME", destination=destination, **more)

    def open(self, path: str, **more: object) -> bytes:
        return self.ask("GET", path, "OPEN", **more).body

    def names(self, path: str) -> list[str]:
        listed = self.ask("GET", path, "LISTSTATUS")
        return (
            [each["pathSuffix"] for each in listed.facts["FileStatuses"]["FileStatus"]] if listed.status == 200 else []
        )

    def _send(self, method: str, target: str, body: Iterable[bytes] | None) -> Answer:
        first = self._exchange(method, target, None)
        if isinstance(first, Answer):
            return first
        final = self._exchange(method, first, body)
        assert isinstance(final, Answer)
        return final

    def _exchange(self, method: str, target: str, body: Iterable[bytes] | None) -> Answer | str:
        try:
            self._connection.request(
                method, target, body=body, encode_chunked=body is not None, headers=_CHUNKED if body is not None else {}
            )
            response = self._connection.getresponse()
            content = response.read()
        except BaseException:
            self._connection.close()
            raise
        assert response.getheader("Content-Type") is None
        if response.status == 307:
            place = urlsplit(response.getheader("Location") or "")
            return f"{place.path}?{place.query}"
        return Answer(response.status, content)


_CHUNKED = {"Transfer-Encoding": "chunked"}
