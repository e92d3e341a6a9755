"""What the quorum of a node needs of others: a way to other controllers, and an owner for the records that it keeps."""

from typing import NamedTuple, Protocol

from riverlog.model.errors import Refusal
from riverlog.model.ids import Address, Offset
from riverlog.raft.messages import Request, Response, VersionsRequest, VersionsResponse


class NoResponse(Exception):
    """No response will come, or none that can be used; the message says why."""


class Unsupported(NoResponse):
    """The peer does not know the request."""


class NobodyListens(NoResponse):
    """A connection was refused: there is no such process."""


class ForeignCluster(NoResponse):
    """The peer belongs to another cluster."""


class QuorumPeers(Protocol):
    """The way to other controllers."""

    async def ask(self, address: Address, request: Request | VersionsRequest) -> Response | VersionsResponse:
        """Send a request and return the response; NoResponse where there is none."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class Reply(NamedTuple):
    """The response to a request of a peer, with what was read of log or snapshot."""

    response: Response
    content: bytes | None = None


class QuorumOwner(Protocol):
    """Whose records the log keeps."""

    @property
    def is_writing_snapshot(self) -> bool:
        """Return whether a snapshot is written, or what it replaces is deleted: no other may take its place then."""
        ...

    def next_batch(self) -> memoryview | None:
        """Return the records that wait, as one batch; the same ones until they are written or refused."""
        ...

    def written(self, end: Offset) -> None:
        """Note that the batch is in the log, and ends there."""
        ...

    def refused(self, refusal: Refusal) -> None:
        """Note that there is no room for the batch."""
        ...

    def committed(self, high_watermark: Offset) -> None:
        """Note that all below is committed."""
        ...

    def leadership_changed(self) -> None:
        """Look who leads now."""
        ...

    def installed(self) -> None:
        """Note that a snapshot has taken the place of the whole log."""
        ...

    def stalled(self, seconds: float) -> None:
        """Note that this process stood still for so long: it has heard nobody meanwhile."""
        ...

    def failed(self, error: Exception) -> None:
        """Note that the log has failed for good."""
        ...
