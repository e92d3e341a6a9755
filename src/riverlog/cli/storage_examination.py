"""What the log directories of a node are, read without changing anything: whose, who votes, and what is wrong."""

from collections.abc import Sequence

from riverlog.cli.terminal.render import Row
from riverlog.controller.bootstrap_file import read_bootstrap
from riverlog.controller.folder_check import check_folder
from riverlog.controller.opening import begins_cluster
from riverlog.controller.snapshot_files import BadMetadata, decode_snapshot, snapshot_name
from riverlog.controller.storage import METADATA_FOLDER
from riverlog.log.checkpoint import read_file
from riverlog.log.identity import DirectoryIdentity, DirectoryRefused, find
from riverlog.metadata.encoding import BadMetadataRecord
from riverlog.model.ids import NodeId
from riverlog.model.settings import NodeSettings
from riverlog.model.uuids import encode_uuid
from riverlog.raft.control_records import BadControlRecord
from riverlog.raft.voters import Voter
from riverlog.records.errors import CorruptBatch
from riverlog.world.disk import FileSystem


def examine(node: NodeSettings, folders: Sequence[str]) -> list[Row]:
    """Return a row for each directory, with the first thing that is wrong about it."""
    rows: list[Row] = []
    cluster_id = node.cluster_id or None
    for folder in folders:
        identity, problem = _identity(folder)
        if identity is not None:
            cluster_id = cluster_id or identity.cluster_id
            problem = _foreign(identity, cluster_id, node.node_id)
        elif problem is None and not begins_cluster(node):
            problem = "it is not formatted; `riverlog storage format` does that"
        row: dict[str, object] = {
            "path": folder,
            "cluster_id": None if identity is None else identity.cluster_id,
            "node_id": None if identity is None else identity.node_id,
            "directory_id": None if identity is None else encode_uuid(identity.directory_id),
            "voters": None,
            "vote": None,
            "features": None,
            "problem": problem,
        }
        if folder == folders[0] and identity is not None:
            try:
                row |= _metadata(folder)
            except BadMetadata as error:
                row["problem"] = problem or str(error)
        rows.append(row)
    return rows


def _identity(folder: str) -> tuple[DirectoryIdentity | None, str | None]:
    disk = FileSystem()
    try:
        return find(disk, folder), None
    except DirectoryRefused as error:
        return None, str(error)


def _foreign(identity: DirectoryIdentity, cluster_id: str, node_id: NodeId) -> str | None:
    if identity.cluster_id != cluster_id:
        return f"it belongs to the cluster {identity.cluster_id}, not to {cluster_id}"
    if identity.node_id != node_id:
        return f"it belongs to node {identity.node_id}, and node.id is {node_id}"
    return None


def _metadata(folder: str) -> dict[str, object]:
    """Return what the metadata log says of voters, and the file of the first levels; BadMetadata where damaged."""
    disk = FileSystem()
    levels = read_bootstrap(disk, folder) or {}
    facts: dict[str, object] = {
        "features": ", ".join(f"{name}={level}" for name, level in sorted(levels.items())) or None
    }
    path = f"{folder}/{METADATA_FOLDER}"
    if not disk.exists(path):
        return facts
    found = check_folder(disk, path)
    if found.newest_snapshot is not None:
        _check_whole(path, read_file(disk, f"{path}/{snapshot_name(found.newest_snapshot)}") or b"")
    said = [each.voters for each in found.said if each.voters is not None]
    if said:
        facts["voters"] = ", ".join(map(_described, said[-1]))
    if found.vote is not None:
        election = found.vote.election
        voted = "nobody" if election.voted_for is None else f"node {election.voted_for}"
        leader = "" if election.leader_id is None else f", whose leader was node {election.leader_id}"
        facts["vote"] = f"{voted} in epoch {election.epoch}{leader}"
    return facts


def _check_whole(path: str, content: bytes) -> None:
    """Refuse a snapshot that cannot be read to its end."""
    try:
        for _ in decode_snapshot(content):
            pass
    except (CorruptBatch, BadControlRecord, BadMetadataRecord) as error:
        raise BadMetadata(path, str(error)) from error


def _described(voter: Voter) -> str:
    where = f"@{voter.endpoints[0].address}" if voter.endpoints else ""
    directory = "" if voter.key.directory_id is None else f":{encode_uuid(voter.key.directory_id)}"
    return f"{voter.key.id}{where}{directory}"
