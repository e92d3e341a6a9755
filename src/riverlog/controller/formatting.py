"""How log directories are prepared for a cluster, as Kafka's storage tool does it: whose they are, and who votes first.

The first voters stand in a snapshot of offset 0, from which every one of them begins. A directory that belongs to a
cluster is never formatted again.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from riverlog.controller.bootstrap_file import write_bootstrap
from riverlog.controller.snapshot_files import encode_snapshot, snapshot_name
from riverlog.controller.storage import METADATA_FOLDER
from riverlog.log.checkpoint import replace_file
from riverlog.log.identity import DirectoryIdentity, DirectoryRefused, find, write_identity
from riverlog.metadata.features import FIRST_LEVELS
from riverlog.metadata.limits import RESERVED_DIRECTORIES
from riverlog.model.ids import LeaderEpoch, NodeId, Offset
from riverlog.model.ports import Clock, Disk, Random
from riverlog.model.uuids import encode_uuid
from riverlog.raft.log_tail import SnapshotId
from riverlog.raft.voters import KRAFT_VERSIONS, ReplicaKey, Voter, VoterSet

FIRST_SNAPSHOT = SnapshotId(Offset(0), LeaderEpoch(0))


class FormattedDirectory(NamedTuple):
    """A log directory, and what was made of it."""

    folder: str
    directory_id: UUID
    was_formatted: bool
    """Whether it belonged to the cluster already, and was left as it is."""


def format_directories(
    disk: Disk,
    clock: Clock,
    random: Random,
    folders: Sequence[str],
    *,
    cluster_id: str,
    node_id: NodeId,
    region: str = "",
    first_voters: VoterSet | None = None,
    own_voter: Voter | None = None,
    levels: Mapping[str, int] = FIRST_LEVELS,
    ignore_formatted: bool = False,
) -> list[FormattedDirectory]:
    """Prepare the directories of a node.

    `first_voters` begin the cluster; with `own_voter` in their place this node alone does, in the directory id that it
    is given here. A cluster that begins does so with these `levels` of features. DirectoryRefused where a directory
    belongs to a cluster already, unless those are to be ignored.
    """
    found = {folder: find(disk, folder) for folder in folders}
    for folder, identity in found.items():
        if identity is not None and not ignore_formatted:
            raise DirectoryRefused(
                f"{folder} belongs to the cluster {identity.cluster_id} already; it was left as it is, and "
                "--ignore-formatted prepares the others"
            )
        if identity is not None and (identity.cluster_id, identity.node_id) != (cluster_id, node_id):
            raise DirectoryRefused(
                f"{folder} belongs to node {identity.node_id} of the cluster {identity.cluster_id}; it was left alone"
            )
    formatted = []
    for folder, identity in found.items():
        if identity is not None:
            formatted.append(FormattedDirectory(folder, identity.directory_id, was_formatted=True))
            continue
        is_first = folder == folders[0]
        directory_id = _own_directory(node_id, first_voters) if is_first else None
        directory_id = directory_id or new_directory_id(random)
        disk.make_folder(folder)
        if is_first:
            voters = first_voters
            if own_voter is not None:
                voters = VoterSet.of([own_voter._replace(key=ReplicaKey(node_id, directory_id))])
            if voters is not None:
                _write_first_voters(disk, clock, folder, voters)
        write_bootstrap(disk, folder, levels)
        disk.sync_folder(folder)
        # Last, because it says that all the rest is there.
        write_identity(disk, folder, DirectoryIdentity(cluster_id, node_id, directory_id, region))
        disk.sync_folder(folder)
        formatted.append(FormattedDirectory(folder, directory_id, was_formatted=False))
    return formatted


def _own_directory(node_id: NodeId, voters: VoterSet | None) -> UUID | None:
    """Return the directory id under which the node is to vote."""
    voter = None if voters is None else voters.by_id.get(node_id)
    return None if voter is None else voter.key.directory_id


def _write_first_voters(disk: Disk, clock: Clock, folder: str, voters: VoterSet) -> None:
    path = f"{folder}/{METADATA_FOLDER}"
    disk.make_folder(path)
    content = encode_snapshot([], FIRST_SNAPSHOT.epoch, clock.wall_ms(), voters=voters, kraft_version=KRAFT_VERSIONS[1])
    replace_file(disk, f"{path}/{snapshot_name(FIRST_SNAPSHOT)}", content)


def new_directory_id(random: Random) -> UUID:
    """Draw an id that is not reserved, and that no tool takes for an option."""
    while True:
        drawn = UUID(int=random.getrandbits(128), version=4)
        if drawn.int >= RESERVED_DIRECTORIES and not encode_uuid(drawn).startswith("-"):
            return drawn
