"""The way to other controllers: a connection to each, made when it is needed, in lanes that do not hold each other up.

A Fetch that its leader holds back must not keep a vote waiting, because responses come in the order of the requests. So
there is a lane for each kind. Whoever asks is told once how it ended; nothing is sent again.
"""

import asyncio
from enum import Enum, auto
from typing import Any, Final

from riverlog.client.errors import ConnectionRefused, KafkaError, TimedOut, Unreachable
from riverlog.client.network.connection import Connection
from riverlog.controller.limits import PEER_CONNECTIONS_MAX
from riverlog.controller.peer_answers import PeerAnswers
from riverlog.controller.quorum_ports import ForeignCluster, NobodyListens, NoResponse, Unsupported
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Address
from riverlog.model.ports import Connecting
from riverlog.raft.control_records import BadControlRecord
from riverlog.raft.exchange.requests import encode_request
from riverlog.raft.exchange.responses import BadResponse, RequestRefused, decode_response
from riverlog.raft.messages import (
    FetchRequest,
    FetchSnapshotRequest,
    Request,
    Response,
    VersionsRequest,
    VersionsResponse,
    VoteRequest,
)
from riverlog.records.errors import CorruptBatch
from riverlog.wire.apis import ApiKey

_PRE_VOTE_SINCE: Final = 2
_CLIENT_ID: Final = "riverlog-controller"


class Lane(Enum):
    """What may wait for each other."""

    FETCH = auto()
    ELECTION = auto()
    HEARTBEAT = auto()
    CONTROL = auto()
    FORWARD = auto()
    MARKERS = auto()
    VERIFICATION = auto()
    OFFSETS = auto()


class Peers:
    """Connections to controllers."""

    def __init__(self, network: Connecting, cluster_id: str, *, connect_seconds: float, request_seconds: float) -> None:
        self._network = network
        self._cluster_id = cluster_id
        self._connect_seconds = connect_seconds
        self._request_seconds = request_seconds
        self.answers = PeerAnswers()
        self._connections: dict[tuple[Address, Lane], Connection] = {}
        self._opening: dict[tuple[Address, Lane], asyncio.Task[Connection]] = {}

    async def ask(self, address: Address, request: Request | VersionsRequest) -> Response | VersionsResponse:
        """Send a request of Raft's and return the response; NoResponse where there is none."""
        try:
            response = await self._ask(address, request)
        except NoResponse as error:
            self.answers.note_silence(address, error)
            raise
        if not isinstance(response, VersionsResponse):
            self.answers.note(address, response.leadership)
        return response

    async def _ask(self, address: Address, request: Request | VersionsRequest) -> Response | VersionsResponse:
        lane = Lane.FETCH if isinstance(request, FetchRequest | FetchSnapshotRequest) else Lane.ELECTION
        seconds = self._request_seconds
        if isinstance(request, FetchRequest):
            seconds += request.wait_seconds
        connection = await self.connection(address, lane)
        if isinstance(request, VoteRequest) and request.pre_vote and not _knows_pre_vote(connection):
            raise Unsupported(f"{address} does not know the question before a vote")
        message = await self.send(connection, encode_request(request, self._cluster_id), seconds)
        try:
            return decode_response(message)
        except (BadResponse, CorruptBatch, BadControlRecord) as error:
            if isinstance(error, RequestRefused) and error.code is ErrorCode.INCONSISTENT_CLUSTER_ID:
                raise ForeignCluster(f"{address} belongs to another cluster") from error
            raise NoResponse(f"{address}: {error}") from error

    async def send(self, connection: Connection, message: object, seconds: float) -> Any:
        """Send a message on an open connection and return the response; NoResponse where there is none."""
        try:
            return await connection.send(message, seconds=seconds)
        except (Unreachable, TimedOut) as error:
            raise NoResponse(error.message) from error
        except KafkaError as error:
            raise Unsupported(error.message) from error

    async def connection(self, address: Address, lane: Lane) -> Connection:
        """Return the open connection of a lane, or open it; NoResponse where nobody answers."""
        key = (address, lane)
        known = self._connections.get(key)
        if known is not None and not known.closed:
            self._connections[key] = self._connections.pop(key)  # the one used last is the last
            return known
        opening = self._opening.get(key)
        if opening is None:
            opening = self._opening[key] = asyncio.ensure_future(self._open(address))
            opening.add_done_callback(lambda done: self._opened(key, done))
        try:
            return await asyncio.shield(opening)
        except ConnectionRefused as error:
            raise NobodyListens(error.message) from error
        except KafkaError as error:
            raise NoResponse(error.message) from error

    async def close(self) -> None:
        """Close all connections; whoever waits is told that no response will come."""
        for opening in tuple(self._opening.values()):
            opening.cancel()
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    async def _open(self, address: Address) -> Connection:
        return await Connection.open(
            self._network,
            address,
            client_id=_CLIENT_ID,
            connect_seconds=self._connect_seconds,
            request_seconds=self._request_seconds,
        )

    def _opened(self, key: tuple[Address, Lane], opening: "asyncio.Task[Connection]") -> None:
        del self._opening[key]
        if not opening.cancelled() and opening.exception() is None:
            self._connections.pop(key, None)
            self._connections[key] = opening.result()
            while len(self._connections) > PEER_CONNECTIONS_MAX:
                oldest = next(iter(self._connections))
                self._connections.pop(oldest).close()


def _knows_pre_vote(connection: Connection) -> bool:
    return connection.offers(ApiKey.VOTE) and connection.version_of(ApiKey.VOTE) >= _PRE_VOTE_SINCE
