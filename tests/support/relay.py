"""Relays between clients and a node that see every request and every answer on its way.

A watcher is told of four moments of each request. It may let it pass, hold it (only this connection waits), or raise
`Cut`: then nothing more passes on this connection, as if the network had died just there.

    client   -- Asked -->  relay  -- Forwarded -->  node
    client  <-- Heard --   relay  <-- Answered --   node

`KafkaRelay` reads frames of Kafka's protocol, `HttpRelay` requests of HTTP/1.1; what is asked has a name in both: the
API's, or the operation of WebHDFS.
"""

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from enum import Enum, auto
from io import BufferedReader
from types import TracebackType
from typing import Final, NamedTuple, Self
from urllib.parse import parse_qs, unquote, urlsplit

from riverlog.wire.apis import ApiKey

HOST: Final = "127.0.0.1"
AWAY_SECONDS_MAX: Final = 20.0
_PAUSE_SECONDS: Final = 0.02


class Moment(Enum):
    """How far a request has come."""

    ASKED = auto()
    """The node has not seen it."""
    FORWARDED = auto()
    """The node has it, and has perhaps answered."""
    ANSWERED = auto()
    """The node has answered, and the client has not heard."""
    HEARD = auto()
    """The client has the answer, or will read it soon."""


class Passing(NamedTuple):
    """A request at one moment."""

    moment: Moment
    name: str
    """`JoinTransaction`, `RENAME`."""
    about: str
    """All that it says, as far as it is text; of HTTP its path, then its parameters, then its body."""
    port: int
    """From which the client is connected."""


class Cut(Exception):
    """What a watcher raises to let nothing more pass."""


Watcher = Callable[[Passing], None]


def let_pass(_: Passing) -> None:
    """Watch nothing."""


class Relay:
    """Listens on a port of its own from the start, and connects each client with the node at `target`."""

    def __init__(self) -> None:
        self.target: tuple[str, int] | None = None
        self.watcher: Watcher = let_pass
        self._listening = socket.create_server((HOST, 0))
        self._open: set[socket.socket] = set()
        self._closing = threading.Event()
        self._accepting = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        self._accepting.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listening.close()
        for each in list(self._open):
            _end(each)

    @property
    def address(self) -> str:
        """Return where clients connect, as host:port."""
        return f"{HOST}:{self.port}"

    @property
    def port(self) -> int:
        """Return the port alone."""
        port: int = self._listening.getsockname()[1]
        return port

    def lead_to(self, address: str) -> None:
        """Connect clients with this address from now on; one with a scheme, as in a ready line, is understood too."""
        host, _, port = address.rpartition("/")[2].rpartition(":")
        self.target = (host, int(port))

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        """Make a client speak with the node until either has gone."""
        with client:
            node = self._connect()
            if node is None:
                return
            with node:
                self._open |= {client, node}
                try:
                    for each in (client, node):
                        each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    self._relay(client, node)
                except (OSError, EOFError, Cut):
                    pass
                finally:
                    self._open -= {client, node}

    def _connect(self) -> socket.socket | None:
        """Connect with the node; one that is away is waited for, as by a network that repeats what is lost."""
        deadline = time.monotonic() + AWAY_SECONDS_MAX
        while time.monotonic() < deadline and not self._closing.is_set():
            try:
                assert self.target is not None
                return socket.create_connection(self.target)
            except OSError:
                self._closing.wait(_PAUSE_SECONDS)
        return None

    def _relay(self, client: socket.socket, node: socket.socket) -> None:
        raise NotImplementedError


class KafkaRelay(Relay):
    """Passes frames on. Requests may follow one another without waiting for answers."""

    def _relay(self, client: socket.socket, node: socket.socket) -> None:
        waiting: dict[int, Passing] = {}
        port = client.getpeername()[1]

        def answers() -> None:
            try:
                with node.makefile("rb") as reader:
                    while True:
                        frame = _frame(reader)
                        passing = waiting.pop(int.from_bytes(frame[4:8]))
                        self.watcher(passing._replace(moment=Moment.ANSWERED))
                        client.sendall(frame)
                        self.watcher(passing._replace(moment=Moment.HEARD))
            except (OSError, EOFError, ValueError, Cut):
                _end(client)
                _end(node)

        answering = threading.Thread(target=answers, daemon=True)
        answering.start()
        try:
            with client.makefile("rb") as reader:
                while True:
                    frame = _frame(reader)
                    passing = Passing(Moment.ASKED, _api(frame), frame.decode("latin-1"), port)
                    self.watcher(passing)
                    waiting[int.from_bytes(frame[8:12])] = passing
                    node.sendall(frame)
                    self.watcher(passing._replace(moment=Moment.FORWARDED))
        finally:
            _end(client)
            _end(node)
            answering.join()


class HttpRelay(Relay):
    """Passes requests on as wholes, one after another."""

    def _relay(self, client: socket.socket, node: socket.socket) -> None:
        with client.makefile("rb") as requests, node.makefile("rb") as answers:
            while True:
                request = _message(requests)
                passing = Passing(Moment.ASKED, *_operation(request), client.getpeername()[1])
                self.watcher(passing)
                node.sendall(request)
                self.watcher(passing._replace(moment=Moment.FORWARDED))
                answer = _message(answers)
                self.watcher(passing._replace(moment=Moment.ANSWERED))
                client.sendall(answer)
                self.watcher(passing._replace(moment=Moment.HEARD))


def _frame(reader: BufferedReader) -> bytes:
    length = _exactly(reader, 4)
    return length + _exactly(reader, int.from_bytes(length))


def _api(frame: bytes) -> str:
    return ApiKey(int.from_bytes(frame[4:6])).title


def _message(reader: BufferedReader) -> bytes:
    """Read a whole request or answer, whose end its head tells."""
    head = lines = _line(reader)
    while (line := _line(reader)) != b"\r\n":
        lines += line.lower()
        head += line
    head += b"\r\n"
    if b"transfer-encoding: chunked" in lines:
        return head + _chunks(reader)
    length = lines.partition(b"content-length:")[2].partition(b"\r\n")[0]
    return head + _exactly(reader, int(length or 0))


def _chunks(reader: BufferedReader) -> bytes:
    body = b""
    while True:
        size = _line(reader)
        body += size + _exactly(reader, int(size.partition(b";")[0], 16) + len(b"\r\n"))
        if size.strip() == b"0":
            return body


def _operation(request: bytes) -> tuple[str, str]:
    """Name a request's operation, and give what it says."""
    head, _, body = request.partition(b"\r\n\r\n")
    target = head.split(b" ", 2)[1].decode("ascii")
    name = parse_qs(urlsplit(target).query).get("op", [""])[0]
    return name, unquote(target) + " " + body.decode("latin-1")


def _line(reader: BufferedReader) -> bytes:
    line = reader.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    return line


def _exactly(reader: BufferedReader, count: int) -> bytes:
    content = reader.read(count)
    if len(content) < count:
        raise EOFError
    return content


def _end(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
