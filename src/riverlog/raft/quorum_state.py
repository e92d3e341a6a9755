"""The file `quorum-state`, as Kafka writes it: one line of JSON with the newest epoch, its leader, and the own vote.

Version 1 names the disk that was voted for; version 0, without reconfiguration, names all voters instead. A file that
cannot be read is no reason to begin anew: the node might vote twice in one epoch.
"""

import json
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from riverlog.model.ids import LeaderEpoch, NodeId
from riverlog.model.uuids import decode_uuid, encode_uuid
from riverlog.raft.election import EPOCH_MAX, ElectionState
from riverlog.raft.voters import RECONFIGURABLE, ReplicaKey
from riverlog.wire.types import NO_UUID

QUORUM_STATE_FILE: Final = "quorum-state"
_NOBODY: Final = -1
_EPOCH_MAX: Final = EPOCH_MAX - 1
"""The last epoch but one: whoever begins another must have one left."""


class BadQuorumState(ValueError):
    """What stands in `quorum-state` cannot be read."""


def encode_election(state: ElectionState, *, kraft_version: int, voters: Iterable[NodeId]) -> bytes:
    """Write the content of the file."""
    vote = state.voted_for
    known: dict[str, Any] = {
        "leaderId": _NOBODY if state.leader_id is None else state.leader_id,
        "leaderEpoch": state.epoch,
        "votedId": _NOBODY if vote is None else vote.id,
    }
    if kraft_version >= RECONFIGURABLE:
        directory = NO_UUID if vote is None or vote.directory_id is None else vote.directory_id
        document = {**known, "votedDirectoryId": encode_uuid(directory), "data_version": 1}
    else:
        listed = [{"voterId": voter} for voter in voters]
        document = {"clusterId": "", **known, "appliedOffset": 0, "currentVoters": listed, "data_version": 0}
    return json.dumps(document, separators=(",", ":")).encode()


class SavedElection(NamedTuple):
    """What stands in the file."""

    election: ElectionState
    kraft_version: int
    """The level at which it was written."""
    voters: tuple[NodeId, ...] = ()
    """Who votes, where the level is 0."""


def decode_election(content: bytes) -> SavedElection:
    """Read the content of the file; BadQuorumState where it is not what a node has written."""
    try:
        document = json.loads(content)
        if not isinstance(document, dict) or document.get("data_version") not in (0, 1):
            raise BadQuorumState("it is not of a version that is known")
        epoch = _integer(document, "leaderEpoch", least=0)
        leader, voted = _integer(document, "leaderId", least=_NOBODY), _integer(document, "votedId", least=_NOBODY)
        directory = decode_uuid(document["votedDirectoryId"]) if document["data_version"] == 1 else NO_UUID
        listed = document.get("currentVoters") or ()
        voters = tuple(NodeId(_integer(each, "voterId", least=0)) for each in listed)
    except BadQuorumState:
        raise
    except (ValueError, KeyError, TypeError, RecursionError):
        raise BadQuorumState("it does not name an epoch, a leader and a vote") from None
    vote = None if voted == _NOBODY else ReplicaKey(NodeId(voted), None if directory == NO_UUID else directory)
    election = ElectionState(LeaderEpoch(epoch), None if leader == _NOBODY else NodeId(leader), vote)
    return SavedElection(election, document["data_version"], voters)


def _integer(document: dict[str, Any], name: str, *, least: int) -> int:
    value = document[name]
    if type(value) is not int or not least <= value <= _EPOCH_MAX:
        raise BadQuorumState(f"{name} is not a number between {least} and {_EPOCH_MAX}")
    return value
