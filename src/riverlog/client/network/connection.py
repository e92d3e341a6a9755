"""One connection to one broker: requests pipelined, answers matched in order, each with a deadline.

Nothing is retried here. When the connection breaks, every unanswered request fails with Unreachable, and the
connection stays closed; whoever needs the broker opens another. A request that is not answered in time breaks the
connection, because answers come in order: those behind it would be late as well. A riverlog broker tells how many bytes
it will hold unanswered; beyond them there is no room until it answers, so that requests wait here, where they can still
be merged, and not in buffers on the way.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import Callable
from struct import Struct
from sys import maxsize
from typing import Any, Final, NamedTuple

from riverlog import __version__
from riverlog.client.errors import ConnectionRefused, KafkaError, TimedOut, Unreachable, check
from riverlog.client.limits import EXPECTED_BYTES_MIN, RECEIVES_PER_TURN_MAX, REQUESTS_IN_FLIGHT_PER_BROKER_MAX
from riverlog.client.network.login import log_in
from riverlog.client.network.security import Login
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Address
from riverlog.model.limits import RESPONSE_BYTES_MAX, UNSENT_BYTES_PER_CONNECTION_MAX
from riverlog.model.ports import Connecting, FileRange, Socket
from riverlog.wire.apis import API_BY_KEY, Api, ApiKey
from riverlog.wire.codec import MalformedMessage
from riverlog.wire.framing import FrameBuffer, FrameRefused
from riverlog.wire.headers import decode_response, encode_request, read_window
from riverlog.wire.messages.api_versions import OWN_SOFTWARE, ApiVersionsRequest, ApiVersionsResponse
from riverlog.wire.messages.fetch import FetchResponse
from riverlog.wire.types import key_of


class Connection:
    """A connected broker that has said which versions it speaks."""

    def __init__(self, socket: Socket, address: Address, *, client_id: str, request_seconds: float) -> None:
        self.address = address
        self.features: dict[str, int] = {}
        """The level of each feature that the whole cluster runs at."""
        self.on_room: Callable[[], None] | None = None
        """Called when there is room again."""
        self._socket = socket
        self._client_id = client_id
        self._request_seconds = request_seconds
        self._loop = asyncio.get_running_loop()
        self._versions: dict[int, int] = {ApiKey.API_VERSIONS: API_BY_KEY[ApiKey.API_VERSIONS].versions.max}
        self._incoming = FrameBuffer(RESPONSE_BYTES_MAX)
        self._outgoing: deque[memoryview] = deque()
        self._unsent_bytes = 0  # in _outgoing
        self._waiting: deque[_Waiting] = deque()  # in the order of sending; never longer than the limit in flight
        self._unanswered_bytes = 0  # of the requests in _waiting
        self._window: int | None = None  # how many unanswered bytes the broker wants at most; None if it does not say
        self._room: deque[asyncio.Future[None]] = deque()
        self._correlation_id = 0
        self._timer: asyncio.Handle | None = None
        self._timer_at = 0.0  # uvloop's handle does not tell where it calls at once
        self._muted_until = 0.0
        self._broken: str | None = None
        socket.on_readable(self._readable)

    @classmethod
    async def open(
        cls,
        network: Connecting,
        address: Address,
        *,
        client_id: str,
        connect_seconds: float,
        request_seconds: float,
        login: Login | None = None,
    ) -> "Connection":
        """Connect, agree on versions, and say who is there where a login is given; raise Unreachable where nobody, or
        nobody of Kafka's kind, answers."""
        try:
            async with asyncio.timeout(connect_seconds):
                socket = await network.connect(address.host, address.port)
        except TimeoutError:
            raise Unreachable(f"{address} did not take the connection within {connect_seconds:g} s") from None
        except OSError as error:
            kind = ConnectionRefused if isinstance(error, ConnectionRefusedError) else Unreachable
            raise kind(f"{address}: {_reason(error)}") from None
        connection = cls(socket, address, client_id=client_id, request_seconds=request_seconds)
        try:
            await connection._agree_on_versions(connect_seconds)
            if login is not None:
                await log_in(connection, login, connect_seconds)
        except BaseException:
            connection.close()
            raise
        return connection

    @property
    def closed(self) -> bool:
        return self._broken is not None

    @property
    def in_flight(self) -> int:
        """Return how many requests wait for their answer."""
        return len(self._waiting)

    @property
    def waiting_since(self) -> float | None:
        """Return since when the oldest request waits for its answer, by the loop's clock."""
        return self._waiting[0].sent_at if self._waiting else None

    @property
    def has_room(self) -> bool:
        """Return whether another request may be sent now: not too many unsent or unanswered, not asked to pause."""
        return (
            len(self._waiting) < REQUESTS_IN_FLIGHT_PER_BROKER_MAX
            and self._unsent_bytes < UNSENT_BYTES_PER_CONNECTION_MAX
            and (self.room_bytes > 0 or not self._waiting)
            and self.muted_seconds <= 0
        )

    @property
    def room_bytes(self) -> int:
        """Return what the broker's window has left; one request may be larger if no other is under way."""
        return maxsize if self._window is None else self._window - self._unanswered_bytes

    @property
    def muted_seconds(self) -> float:
        """Return how long the broker wants to be left alone (KIP-219)."""
        return self._muted_until - self._loop.time()

    def version_of(self, key: ApiKey) -> int:
        """Return the highest version that both sides speak, or raise KafkaError."""
        version = self._versions.get(key)
        if version is None:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"the broker at {self.address} does not offer {key.title} in a version that this client speaks",
            )
        return version

    def offers(self, key: ApiKey) -> bool:
        """Return whether there is a version of a request that both sides speak."""
        return key in self._versions

    async def request(self, message: object, *, seconds: float | None = None, version_max: int | None = None) -> Any:
        """Send when there is room and wait for the answer; `seconds` bounds the answer, not the wait for room."""
        while not self.has_room and not self.closed:
            room = self._loop.create_future()
            self._room.append(room)
            if self.muted_seconds > 0:
                self._loop.call_later(self.muted_seconds, self._give_room)
            await room
        return await self.send(message, seconds=seconds, version_max=version_max)

    def send(
        self, message: object, *, seconds: float | None = None, version_max: int | None = None
    ) -> "asyncio.Future[Any]":
        """Send now, in no newer version than the sender wants; the future gives the answer, Unreachable or TimedOut."""
        answer: asyncio.Future[Any] = self._loop.create_future()
        if self._broken is not None:
            answer.set_exception(Unreachable(self._broken))
            return answer
        api = API_BY_KEY[key_of(type(message))]
        version = self.version_of(api.key)
        if version_max is not None and version_max < version:
            version = version_max
        now = self._loop.time()
        deadline = now + (self._request_seconds if seconds is None else seconds)
        self._correlation_id = (self._correlation_id + 1) & 0x7FFF_FFFF
        request = encode_request(api, version, self._correlation_id, self._client_id, message)
        self._waiting.append(_Waiting(self._correlation_id, api, version, answer, now, deadline, len(request)))
        self._unanswered_bytes += len(request)
        self._write(request)
        if self._timer is None or deadline < self._timer_at:
            if self._timer is not None:
                self._timer.cancel()
            self._look_at_deadlines_at(deadline)
        return answer

    def send_unanswered(self, message: object) -> None:
        """Send a request that no answer comes to: Produce without acknowledgement."""
        if self._broken is not None:
            raise Unreachable(self._broken)
        api = API_BY_KEY[key_of(type(message))]
        self._correlation_id = (self._correlation_id + 1) & 0x7FFF_FFFF
        self._write(encode_request(api, self.version_of(api.key), self._correlation_id, self._client_id, message))

    def close(self) -> None:
        """Close at once; what is unanswered fails."""
        self._break(f"the connection to {self.address} was closed")

    async def _agree_on_versions(self, seconds: float) -> None:
        request = ApiVersionsRequest(client_software_name=OWN_SOFTWARE, client_software_version=__version__)
        response: ApiVersionsResponse = await self.send(request, seconds=seconds)
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            # KIP-511: the broker is older than our ApiVersions; every broker knows version 0.
            self._versions[ApiKey.API_VERSIONS] = 0
            response = await self.send(ApiVersionsRequest(), seconds=seconds)
        check(response.error_code, f"{self.address} does not tell which versions it speaks")
        self._window = response.window_bytes or None
        self.features = {feature.name: feature.max_version_level for feature in response.finalized_features}
        for offered in response.api_keys:
            api = API_BY_KEY.get(offered.api_key)
            if api is None:
                continue
            version = min(offered.max_version, api.versions.max)
            if version >= max(offered.min_version, api.versions.min):
                self._versions[api.key] = version

    def _write(self, request: bytes) -> None:
        self._outgoing.append(memoryview(request))
        self._unsent_bytes += len(request)
        if len(self._outgoing) == 1:
            self._writable()

    def _writable(self) -> None:
        """Send what waits; watch the socket only while it takes less than there is."""
        try:
            while self._outgoing:
                first = self._outgoing[0]
                sent = self._socket.send(first)
                self._unsent_bytes -= sent
                if sent < len(first):
                    self._outgoing[0] = first[sent:]
                else:
                    self._outgoing.popleft()
        except BlockingIOError:
            self._socket.on_writable(self._writable)
            return
        except OSError as error:
            self._break(f"the connection to {self.address} broke: {error.strerror or error}")
            return
        self._socket.on_writable(None)
        self._give_room()

    def _readable(self) -> None:
        try:
            self._receive()
        except OSError as error:
            self._break(f"the connection to {self.address} broke: {error.strerror or error}")
        except (FrameRefused, MalformedMessage) as error:
            self._break(f"{self.address} does not answer as a Kafka broker does: {error}")
        if not self.closed:
            missing = self._incoming.missing
            self._socket.expect(missing if missing >= EXPECTED_BYTES_MIN else 1)

    def _receive(self) -> None:
        """Take what has arrived, and give out whole answers."""
        for _ in range(RECEIVES_PER_TURN_MAX):
            room = self._incoming.room()
            try:
                count = self._socket.receive_into(room)
            except BlockingIOError:
                return
            if count == 0:
                self._break(f"the broker at {self.address} closed the connection")
                return
            self._incoming.received(count)
            for frame in self._incoming.frames():
                self._answered(frame)
            if count < len(room) or self.closed:
                return

    def _answered(self, frame: memoryview) -> None:
        if not self._waiting:
            raise MalformedMessage("an answer came that nobody asked for")
        waiting = self._waiting[0]
        correlation_id, message = _decode(waiting, frame)
        if correlation_id != waiting.correlation_id:
            raise MalformedMessage(f"answer {correlation_id} came where {waiting.correlation_id} was due")
        self._waiting.popleft()
        self._unanswered_bytes -= waiting.size
        window = read_window(waiting.api, waiting.version, frame)
        if window is not None:
            self._window = window
        if isinstance(message, FetchResponse):
            _keep_records(message, self._incoming)
        throttle_ms = getattr(message, "throttle_time_ms", 0)
        if throttle_ms > 0:
            self._muted_until = self._loop.time() + throttle_ms / 1000
        if not waiting.answer.done():
            waiting.answer.set_result(message)
        self._give_room()

    def _give_room(self) -> None:
        while self._room and (self.has_room or self.closed):
            room = self._room.popleft()
            if not room.done():
                room.set_result(None)
                return
        if self.on_room is not None and self.has_room:
            self.on_room()

    def _look_at_deadlines_at(self, when: float) -> None:
        self._timer, self._timer_at = self._loop.call_at(when, self._look_at_deadlines), when

    def _look_at_deadlines(self) -> None:
        self._timer = None
        if not self._waiting:
            return
        first = self._waiting[0]
        if self._loop.time() < first.deadline:
            self._look_at_deadlines_at(first.deadline)
            return
        reason = f"{self.address} did not answer {first.api.name} in time"
        self._waiting.popleft()
        if not first.answer.done():
            first.answer.set_exception(TimedOut(reason))
        self._break(reason)

    def _break(self, reason: str) -> None:
        if self._broken is not None:
            return
        self._broken = reason
        self._socket.close()
        self._outgoing.clear()
        if self._timer is not None:
            self._timer.cancel()
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.answer.done():
                waiting.answer.set_exception(Unreachable(reason))
        while self._room:
            room = self._room.popleft()
            if not room.done():
                room.set_result(None)

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"{self.in_flight} in flight"
        return f"<Connection to {self.address}, {state}>"


class _Waiting(NamedTuple):
    """A request on its way."""

    correlation_id: int
    api: Api
    version: int
    answer: "asyncio.Future[Any]"
    sent_at: float
    deadline: float
    size: int


def _reason(error: OSError) -> str:
    """Explain why there is no connection; what TLS has against it is said in words of its own."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS could not be agreed on: {(error.reason or str(error)).replace('_', ' ').lower()}"
    return error.strerror or str(error)


def _keep_records(response: FetchResponse, incoming: FrameBuffer) -> None:
    """Copy the records out of the frame: they are views, and its memory is about to be used again.

    Where those of one partition are most of that memory, they keep it instead.
    """
    is_kept = False
    for topic in response.responses:
        for partition in topic.partitions:
            records = partition.records
            if records is None:
                continue
            assert not isinstance(records, FileRange)
            if incoming.is_filled_by(len(records)):
                is_kept = True
            else:
                partition.records = bytes(records)
    if is_kept:
        incoming.leave()


def _decode(waiting: _Waiting, frame: memoryview) -> tuple[int, Any]:
    """Read the answer. A broker older than our ApiVersions answers in whatever version it knows: only the
    error code, which stands at the same place in all of them, can be read."""
    if waiting.api.key is ApiKey.API_VERSIONS and len(frame) >= _REFUSAL.size:
        correlation_id, code = _REFUSAL.unpack_from(frame)
        if code == ErrorCode.UNSUPPORTED_VERSION:
            return correlation_id, ApiVersionsResponse(error_code=code)
    return decode_response(waiting.api, waiting.version, frame)


_REFUSAL: Final = Struct(">ih")
