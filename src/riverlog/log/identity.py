"""Who owns a log directory: the file `meta.properties` at its top, as Kafka writes it, and the region beside it.

A directory belongs to one cluster and one node for good. Starting another node on it would mix two histories, so
that is refused in one sentence.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

from riverlog.log.checkpoint import TEMPORARY_SUFFIX, read_file, write_durably
from riverlog.model.ids import NodeId
from riverlog.model.ports import Disk, Random
from riverlog.model.properties import read_properties
from riverlog.model.uuids import decode_uuid, encode_uuid

META_FILE: Final = "meta.properties"
_VERSION: Final = "1"


class DirectoryRefused(Exception):
    """This log directory cannot be used; the message is one sentence for the person who starts the node."""


class DirectoryIdentity(NamedTuple):
    """What `meta.properties` says."""

    cluster_id: str
    node_id: NodeId
    directory_id: UUID
    region: str


def find(disk: Disk, folder: str) -> DirectoryIdentity | None:
    """Read the identity of a directory; None where it has none, as an empty mount point."""
    path = f"{folder}/{META_FILE}"
    content = read_file(disk, path)
    return None if content is None else _decode(content, path)


def check_first(disk: Disk, folders: Sequence[str], metadata_folder: str, *, cluster_id: str) -> None:
    """Refuse to begin new metadata in the first directory where partitions lie, where another one has the metadata or
    is of a cluster already, or where the cluster that it must belong to is named."""
    first, *others = folders
    if _holds_log(disk, f"{first}/{metadata_folder}"):
        return
    if disk.exists(f"{first}/{META_FILE}") and _holds_partitions(disk, first):
        raise DirectoryRefused(
            f"{first} holds partitions, but not the metadata that name their topics ({metadata_folder}); put that "
            "folder back from a copy, or, to begin a new cluster, start in an empty folder"
        )
    for folder in others:
        if disk.exists(f"{folder}/{metadata_folder}"):
            raise DirectoryRefused(f"the cluster's metadata lie in {folder}; name that one first in log.dirs")
        if disk.exists(f"{folder}/{META_FILE}") and not disk.exists(f"{first}/{META_FILE}"):
            raise DirectoryRefused(
                f"{first} is empty, but {folder} belongs to a cluster whose metadata were there; mount what belongs in "
                f"{first}, or, to begin a new cluster, empty {folder} as well"
            )
    if cluster_id and not disk.exists(f"{first}/{META_FILE}"):
        raise DirectoryRefused(
            f"{first} is empty, but is to belong to the cluster {cluster_id}; mount what belongs there, or, to begin a "
            "new cluster, start without cluster.id"
        )


def claim(
    disk: Disk, folder: str, *, node_id: NodeId, cluster_id: str | None, region: str, random: Random
) -> DirectoryIdentity:
    """Read the identity of a directory, or write it where it has none; refuse one of another node or cluster."""
    found = find(disk, folder)
    if found is None:
        if _holds_partitions(disk, folder):
            raise DirectoryRefused(
                f"{folder} holds partitions, but no {META_FILE}, which says whose they are; put it back from a copy"
            )
        identity = DirectoryIdentity(cluster_id or encode_uuid(_new_id(random)), node_id, _new_id(random), region)
        write_identity(disk, folder, identity)
        return identity
    identity = found
    if cluster_id is not None and identity.cluster_id != cluster_id:
        raise DirectoryRefused(f"{folder} belongs to the cluster {identity.cluster_id}, not to {cluster_id}")
    if identity.node_id != node_id:
        raise DirectoryRefused(f"{folder} belongs to node {identity.node_id}, not to node {node_id}")
    if region and identity.region != region:
        identity = identity._replace(region=region)
        write_identity(disk, folder, identity)
    return identity


def _holds_partitions(disk: Disk, folder: str) -> bool:
    """Return whether a directory has a partition's folder with records, the metadata's among them."""
    if not disk.exists(folder):
        return False
    names = (name for name in disk.list(folder) if name.rpartition("-")[2].isdigit())
    return any(_holds_log(disk, f"{folder}/{name}") for name in names)


def _holds_log(disk: Disk, folder: str) -> bool:
    """Return whether a folder has segments, or snapshots of the metadata."""
    try:
        return any(name.endswith((".log", ".checkpoint")) for name in disk.list(folder))
    except OSError:  # it is not there, or no folder
        return False


def write_identity(disk: Disk, folder: str, identity: DirectoryIdentity) -> None:
    """Replace the file; whoever opens the directory syncs its names."""
    path = f"{folder}/{META_FILE}"
    write_durably(disk, path + TEMPORARY_SUFFIX, _encode(identity))
    disk.rename(path + TEMPORARY_SUFFIX, path)


def _new_id(random: Random) -> UUID:
    return UUID(int=random.getrandbits(128), version=4)


def _encode(identity: DirectoryIdentity) -> bytes:
    lines = (
        f"version={_VERSION}",
        f"cluster.id={identity.cluster_id}",
        f"node.id={identity.node_id}",
        f"directory.id={encode_uuid(identity.directory_id)}",
        f"region={identity.region}",
    )
    return "".join(f"{line}\n" for line in lines).encode()


def _decode(content: bytes, path: str) -> DirectoryIdentity:
    try:
        pairs = read_properties(content.decode())
        if pairs["version"] != _VERSION:
            raise DirectoryRefused(f"{path} has version {pairs['version']}; only version {_VERSION} is known")
        return DirectoryIdentity(
            pairs["cluster.id"],
            NodeId(int(pairs["node.id"])),
            decode_uuid(pairs["directory.id"]),
            pairs.get("region", ""),
        )
    except (KeyError, ValueError):
        raise DirectoryRefused(f"{path} is damaged: it does not name a cluster, a node and a directory") from None
