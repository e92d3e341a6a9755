"""AddRaftVoter and RemoveRaftVoter: who votes on the metadata is changed while the cluster runs (KIP-853)."""

from typing import Any

from riverlog.broker.handlers.quorum_request import quorum_request
from riverlog.broker.requests.context import Context, HandlerResult
from riverlog.wire.messages.add_raft_voter import AddRaftVoterRequest
from riverlog.wire.messages.remove_raft_voter import RemoveRaftVoterRequest


def add_raft_voter(request: AddRaftVoterRequest, context: Context) -> HandlerResult[Any]:
    """Have a controller that follows the log vote; the response comes when that is committed, or in the log."""
    return quorum_request(request, context)


def remove_raft_voter(request: RemoveRaftVoterRequest, context: Context) -> HandlerResult[Any]:
    """Have a controller vote no more; the response comes when that is committed."""
    return quorum_request(request, context)
