"""The assignment of partitions to log directories: as the metadata name it, and as the folders are found.

At the start the folders are looked for. One that belongs to no topic is set aside; of several for one partition that
one counts which the metadata name. A partition whose directory is not there is offline, and never begun anew elsewhere.
One whose folder alone is gone begins anew, behind the offsets that it is known to have had.
"""

from uuid import UUID

from riverlog.controller.storage import METADATA_FOLDER
from riverlog.controller.view import MetadataView
from riverlog.log.checkpoint import PARTITION_FILE
from riverlog.metadata.delta import MetadataDelta
from riverlog.metadata.image import LOST_DIRECTORY, PartitionImage, TopicImage
from riverlog.model.disk_errors import SHORTAGE
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NodeId, TopicPartition
from riverlog.model.ports import Random
from riverlog.model.uuids import encode_uuid
from riverlog.observe.logging import get_logger
from riverlog.partitions.directory_health import DirectoryHealth
from riverlog.partitions.registry import NodeDirectory, PartitionRegistry


class DirectoryAssignment:
    """Finds the log directory of each partition of this node."""

    def __init__(self, node_id: NodeId, registry: PartitionRegistry, metadata: MetadataView, random: Random) -> None:
        self._node_id = node_id
        self._registry = registry
        self._metadata = metadata
        self._random = random
        self._by_id = {directory.logs.identity.directory_id: directory for directory in registry.directories}
        self._has_lost = False  # some lie in a directory that is not there
        self._ambiguous: dict[TopicPartition, str] = {}  # found in several directories, and nobody knows which counts
        self._stray: list[tuple[TopicPartition, NodeDirectory]] = []  # of no topic, and could not be set aside yet
        self._log = get_logger("riverlog.replicas")

    def start(self) -> None:
        """Find the folders of partitions, set aside those that belong to no topic, and follow the metadata."""
        found: dict[TopicPartition, list[NodeDirectory]] = {}
        for directory in self._registry.directories:
            try:
                for name in directory.logs.partitions():
                    if str(name) == METADATA_FOLDER:
                        continue
                    if self._is_ours(name, directory):
                        found.setdefault(name, []).append(directory)
                    else:
                        self._stray.append((name, directory))
            except OSError as error:  # one that cannot be listed does not hide the others
                if error.errno in SHORTAGE:
                    raise
                directory.health.fail(f"its folders cannot be listed ({error})")
        self._set_aside()
        for name, directories in found.items():
            if len(directories) == 1 or self._choose(name, directories):
                self._registry.directory_of.setdefault(name, directories[0])
        self._registry.is_complete = True
        for directory in self._registry.directories:
            try:
                if not directory.health.offline:
                    self._find_missing(directory)
            except OSError as error:
                directory.health.failed(error)
        self._metadata.watch(self._follow)

    def _follow(self, delta: MetadataDelta) -> None:
        for topic in delta.deleted:
            for index in range(topic.partition_count):
                self._ambiguous.pop(TopicPartition(topic.name, index), None)

    def _is_ours(self, name: TopicPartition, directory: NodeDirectory) -> bool:
        """Return whether a folder is a live partition's: it has the id of a topic that the metadata know.

        One without an id that was never flushed may be what a power loss left of a deleted topic of the same name. One
        that was flushed, or that has records although no power was lost, has lost its id since: that is damage, and no
        reason to hide its records.
        """
        topic = self._metadata.image.topic(name.topic)
        if topic is None or name.partition >= topic.partition_count:
            return False
        try:
            topic_id = directory.logs.topic_id(name)
            if topic_id is not None:
                return topic_id == topic.id
            logs = directory.logs
            is_ours = logs.was_flushed(name) or (logs.lost_nothing and logs.holds_batches(name))
        except PermissionError:  # whoever opens it gets the error
            return True
        if is_ours:
            self._log.warning(
                "topic id of a folder is lost",
                partition=str(name),
                folder=f"{logs.folder}/{name}",
                detail=f"{PARTITION_FILE} is missing or damaged, and is written again",
            )
        return is_ours

    def _find_missing(self, directory: NodeDirectory) -> None:
        """Find the partitions whose folders are gone from a directory where the metadata say they are, and log them."""
        for name, end in directory.logs.missing().items():
            topic = self._metadata.image.topic(name.topic)
            if topic is None or name.partition >= topic.partition_count:
                continue
            if name in self._registry.directory_of or name in self._ambiguous:
                continue
            if self._named(topic.partition(name.partition)) == directory.logs.identity.directory_id:
                directory.logs.resume(name, end)
                self._log.error(
                    "folder of a partition is missing",
                    partition=str(name),
                    folder=f"{directory.logs.folder}/{name}",
                    known_end_offset=end,
                    detail=f"its records are lost, and it goes on at offset {end}; to have them back, stop the node "
                    "before anything is written there and restore the folder from a copy",
                )
        directory.logs.write_forgotten()

    def _set_aside(self) -> None:
        """Set aside the folders that belong to no topic; try again later with one that cannot be moved now."""
        strays, self._stray = self._stray, []
        for name, directory in strays:
            try:
                aside = directory.logs.set_aside(name, self._random)
            except OSError as error:
                directory.health.failed(error)
                self._stray.append((name, directory))
            else:
                self._log.warning("folder set aside: it belongs to no topic", partition=str(name), folder=aside)

    def _choose(self, name: TopicPartition, directories: list[NodeDirectory]) -> bool:
        """Choose the one of several folders that the metadata name; False where they name none."""
        topic = self._metadata.image.topic(name.topic)
        assert topic is not None
        known = self._by_id.get(self._named(topic.partition(name.partition)) or LOST_DIRECTORY)
        folders = " and ".join(f"{directory.logs.folder}/{name}" for directory in directories)
        if known in directories:
            directories.insert(0, known)
            detail = f"there are {folders}; that in {known.logs.folder} is used: move the others away"
        else:
            detail = (
                f"there are {folders}, and nothing says which one counts: move all but one away and restart the node"
            )
            self._ambiguous[name] = detail
        self._log.error("partition has several folders", partition=str(name), detail=detail)
        return known in directories

    def _named(self, partition: PartitionImage) -> UUID | None:
        """Return the log directory that the metadata name for a partition of this node."""
        named = zip(partition.replicas, partition.directories, strict=False)
        return next((directory for replica, directory in named if replica == self._node_id), None)

    def directory_for(self, name: TopicPartition, partition: PartitionImage) -> NodeDirectory:
        """Return the directory in which a partition lies, or will; Refusal where it is not there, or cannot take it."""
        if self._stray:  # perhaps of an earlier topic of the same name
            self._set_aside()
            if any(stray == name for stray, _ in self._stray):
                raise Refusal(ErrorCode.KAFKA_STORAGE_ERROR, f"an earlier {name} cannot be set aside now; try again")
        if (found := self._registry.directory_of.get(name)) is not None:
            return found
        if (ambiguous := self._ambiguous.get(name)) is not None:
            raise Refusal(ErrorCode.KAFKA_STORAGE_ERROR, ambiguous)
        named = self._named(partition)
        directory = None if named is None else self._by_id.get(named)
        if directory is None:
            known = "" if named in (None, LOST_DIRECTORY) else f" {encode_uuid(named)}"
            message = f"{name} lies in the log directory{known} that is away; mount it and restart the node"
            raise Refusal(ErrorCode.KAFKA_STORAGE_ERROR, message)
        return directory

    def health_of(self, name: TopicPartition, partition: PartitionImage) -> DirectoryHealth | None:
        """Return the health of the directory in which a partition lies, or will; None where it is not there."""
        directory = self._registry.directory_of.get(name) or self._by_id.get(self._named(partition) or LOST_DIRECTORY)
        return None if directory is None or name in self._ambiguous else directory.health

    def is_offline(self, topic: TopicImage, partition: PartitionImage) -> bool:
        """Return whether this node would lead a partition, but its directory is not there.

        Of one that goes offline while the node runs, clients are told by their requests, in words that say why.
        """
        if not self._has_lost or partition.leader != self._node_id:
            return False
        return self.health_of(TopicPartition(topic.name, partition.index), partition) is None

    def found_elsewhere(self) -> dict[tuple[UUID, int], UUID]:
        """Return in which log directories partitions were found other than those that the metadata name."""
        found: dict[tuple[UUID, int], UUID] = {}
        for name in (*self._registry.directory_of, *self._ambiguous):
            topic = self._metadata.image.topic(name.topic)
            if topic is None or name.partition >= topic.partition_count:
                continue  # it was deleted meanwhile, and is about to be removed
            directory = self._registry.directory_of.get(name)
            directory_id = LOST_DIRECTORY if directory is None else directory.logs.identity.directory_id
            if self._named(topic.partition(name.partition)) != directory_id:
                found[topic.id, name.partition] = directory_id
        return found

    def find_lost(self) -> None:
        """Find the partitions of this node whose log directories are not there, and log them."""
        lost: dict[UUID, list[str]] = {}
        for topic in self._metadata.image.all_topics():
            for partition in topic.partitions:
                directory = self._named(partition)
                if directory is not None and directory not in self._by_id:
                    lost.setdefault(directory, []).append(f"{topic.name}-{partition.index}")
        self._has_lost = bool(lost or self._ambiguous)
        for directory, names in lost.items():
            self._log.error(
                "partitions are offline",
                partitions=len(names),
                first=names[0],
                directory_id=encode_uuid(directory),
                detail="their log directory is not among log.dirs, or empty; mount it and restart the node",
            )
