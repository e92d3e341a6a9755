"""Who votes first on a new cluster's metadata, as it is typed, and what its features begin with."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from riverlog.cli.terminal.exits import usage_error
from riverlog.cli.terminal.expressions import pairs
from riverlog.metadata.features import FIRST_LEVELS, KRAFT_VERSION, NODE_FEATURES
from riverlog.metadata.limits import RESERVED_DIRECTORIES
from riverlog.model.endpoints import Endpoint
from riverlog.model.ids import NodeId
from riverlog.model.quorum_settings import read_voters
from riverlog.model.setting import BadSetting
from riverlog.model.uuids import decode_uuid, encode_uuid
from riverlog.raft.voters import ReplicaKey, Voter, VoterSet

FORM: Final = "ID@HOST:PORT:DIRECTORY-ID"


def voter_of(text: str, *, option: str, listener: str) -> Voter:
    """Read `id@host:port:directory`, in Kafka's form."""
    address, _, directory = text.strip().rpartition(":")
    try:
        [static] = read_voters((address,))
    except BadSetting:
        raise usage_error(f"{option} has '{text}'; write {FORM}, as in 1@c1:9093:3Db5QLSqSZieL3rJBUUegA") from None
    return Voter(ReplicaKey(NodeId(static.id), directory_of(directory)), (Endpoint(listener, *static.address),))


def directory_of(text: str) -> UUID:
    """Read the id of a directory."""
    try:
        directory_id = decode_uuid(text)
    except ValueError:
        directory_id = UUID(int=0)
    if encode_uuid(directory_id) != text or directory_id.int < RESERVED_DIRECTORIES:
        raise usage_error(f"'{text}' is no directory id; `riverlog storage random-uuid` makes one")
    return directory_id


def first_voters(text: str, *, listener: str) -> VoterSet:
    """Read the list of --initial-controllers; no node and no directory is named twice."""
    option = "--initial-controllers"
    voters = [voter_of(each, option=option, listener=listener) for each in text.split(",")]
    if len({voter.key.id for voter in voters}) < len(voters):
        raise usage_error(f"{option} names a node twice; each controller votes once")
    if len({voter.key.directory_id for voter in voters}) < len(voters):
        raise usage_error(f"{option} names a directory id twice; each controller has its own")
    return VoterSet.of(voters)


def first_levels(texts: Sequence[str], *, dynamic: bool) -> dict[str, int]:
    """Return the levels that a new cluster begins with, changed by those of --feature.

    kraft.version follows from how the voters are named (`dynamic`: in the metadata), and is only checked.
    """
    levels = dict(FIRST_LEVELS)
    for name, text in pairs(texts, option="--feature").items():
        known = NODE_FEATURES.get(name)
        if known is None:
            raise usage_error(f"there is no feature '{name}'; there are {', '.join(sorted(NODE_FEATURES))}")
        if not (text.isascii() and text.isdigit()) or not known.lowest <= int(text) <= known.highest:
            allowed = f"{known.lowest} to {known.highest}" if known.lowest < known.highest else f"only {known.lowest}"
            raise usage_error(f"--feature {name} cannot be at level {text}; {allowed} can be run here")
        if name != KRAFT_VERSION:
            levels[name] = int(text)
        elif int(text) != int(dynamic):
            why = "says that the settings name the voters" if dynamic else "needs voters that are in the metadata"
            other = "is not set" if dynamic else "is set"
            raise usage_error(f"kraft.version={text} {why}, and controller.quorum.voters {other}; leave it out")
    return levels
