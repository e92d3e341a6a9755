"""One log directory: the partitions of a node, one folder each, and what the node remembers about them.

Held by a lock and owned by one node. Logs are opened when asked for. The checkpoints say, per partition, below
which offset all is synced (recovery point), where the log starts, what was committed (high watermark), and how far it
is compacted; they may lag behind, never run ahead. The marker of a clean shutdown is taken away when the directory is
opened and put back when everything was closed.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Final

from riverlog.log.checkpoint import (
    PARTITION_FILE,
    TEMPORARY_SUFFIX,
    BadCheckpoint,
    decode_offsets,
    decode_topic_id,
    encode_offsets,
    encode_topic_id,
    read_file,
    replace_file,
    write_durably,
)
from riverlog.log.identity import META_FILE, DirectoryIdentity, DirectoryRefused, claim
from riverlog.log.log import Log
from riverlog.log.recovery.process_opening import LogOpening
from riverlog.log.recovery.recovery import list_folder
from riverlog.log.segments.log_folder import LOG_SUFFIX, file_bytes, path_of
from riverlog.log.segments.open_files import OpenFiles, write_file
from riverlog.log.segments.scan import scan_batches
from riverlog.log.sync import SyncPlan
from riverlog.log.truncation import truncate
from riverlog.model.disk_errors import may_pass
from riverlog.model.ids import NodeId, Offset, TopicId, TopicPartition
from riverlog.model.ports import Disk, FileLock, Random
from riverlog.model.settings import TopicConfig
from riverlog.records.batch import checksum

LOCK_FILE: Final = ".lock"
BOOT_FILE: Final = ".boot"
"""In which run of the system the directory was used last."""
CLEAN_FILE: Final = ".kafka_cleanshutdown"
RECOVERY_POINTS_FILE: Final = "recovery-point-offset-checkpoint"
LOG_STARTS_FILE: Final = "log-start-offset-checkpoint"
HIGH_WATERMARKS_FILE: Final = "replication-offset-checkpoint"
CLEANED_OFFSETS_FILE: Final = "cleaner-offset-checkpoint"
DELETED_FOLDER_SUFFIX: Final = "-delete"
STRAY_FOLDER_SUFFIX: Final = "-stray"
_FILE_NAME_CHARACTERS_MAX: Final = 255
_PLANNED_SUFFIX: Final = ".planned"
"""A plan runs beside the loop, which may replace the same files meanwhile: their temporary names must differ."""
NO_BROKER_EPOCH: Final = -1


@dataclass(slots=True)
class CheckpointPlan:
    """The checkpoints as they were on the loop; `run` may wait for the medium in a worker thread."""

    disk: Disk
    generation: int
    files: list[tuple[str, bytes]] = field(default_factory=list)
    beside: str = _PLANNED_SUFFIX
    """What stands behind the files' names until they are put in place."""

    def run(self) -> None:
        """Write and sync the new contents beside the files they will replace."""
        for path, content in self.files:
            write_durably(self.disk, path + self.beside, content)


class LogDirectory:
    """The logs of a node in one folder. Made by `LogDirectory.open`."""

    def __init__(
        self, disk: Disk, folder: str, lock: FileLock, identity: DirectoryIdentity, files: OpenFiles, *, clean: bool
    ) -> None:
        self._disk = disk
        self.folder = folder
        self._lock = lock
        self.identity = identity
        self.clean = clean
        """Whether the directory was closed cleanly before it was opened."""
        self.broker_epoch = self._last_broker_epoch() if clean else NO_BROKER_EPOCH
        """The epoch of the broker that holds the directory, which a clean stop leaves to the next start."""
        self.lost_nothing = False
        """Whether the system has run since the directory was used last: what was written is there, synced or not."""
        self.is_new = False
        """Whether it had no owner before it was opened."""
        self.damage: list[str] = []
        """Checkpoints that could not be read, a sentence each."""
        self._files = files
        self.opened: dict[TopicPartition, Log] = {}
        self._recovery_points = self._read_offsets(RECOVERY_POINTS_FILE)
        self._log_starts = self._read_offsets(LOG_STARTS_FILE)
        self._high_watermarks = self._read_offsets(HIGH_WATERMARKS_FILE)
        self._cleaned_offsets = self._read_offsets(CLEANED_OFFSETS_FILE)
        self._generation = 0
        """Grows whenever an offset was lowered or forgotten, so that an older plan does not bring it back."""
        self._made: set[TopicPartition] = set()
        """Partitions whose folders were made since the directory was opened: their names may not be durable."""
        self._resumed: set[TopicPartition] = set()
        """Partitions whose folders are gone, and that go on where they ended once they are created again."""
        self._forgotten: set[str] = set()
        """Checkpoints from which a partition was dropped, and that were not written since."""

    @classmethod
    def open(
        cls,
        disk: Disk,
        folder: str,
        *,
        node_id: NodeId,
        random: Random,
        cluster_id: str | None = None,
        region: str = "",
        descriptors_max: int | None = None,
    ) -> "LogDirectory":
        """Lock the directory and check whose it is, creating it where there is none; DirectoryRefused says why not."""
        _make_folder_durably(disk, folder)
        try:
            lock = disk.lock(f"{folder}/{LOCK_FILE}")
        except BlockingIOError:
            raise DirectoryRefused(f"{folder} is in use by another node; stop it, or choose another folder") from None
        try:
            is_new = not disk.exists(f"{folder}/{META_FILE}")
            identity = claim(disk, folder, node_id=node_id, cluster_id=cluster_id, region=region, random=random)
            clean = disk.exists(f"{folder}/{CLEAN_FILE}")
            directory = cls(disk, folder, lock, identity, OpenFiles(descriptors_max=descriptors_max), clean=clean)
            directory.is_new = is_new
            directory.lost_nothing = _note_boot(disk, f"{folder}/{BOOT_FILE}")
            if clean:
                disk.remove(f"{folder}/{CLEAN_FILE}")
            disk.sync_folder(folder)  # all names that are there now are durable, whatever a crash left
        except BaseException:
            lock.release()
            raise
        return directory

    def _last_broker_epoch(self) -> int:
        """Read the epoch of the broker that stopped cleanly; Kafka before 3.8 left the file empty."""
        try:
            epoch = json.loads(read_file(self._disk, f"{self.folder}/{CLEAN_FILE}") or b"{}").get("brokerEpoch")
        except (ValueError, AttributeError):
            return NO_BROKER_EPOCH
        return epoch if isinstance(epoch, int) else NO_BROKER_EPOCH

    def closing(self) -> Iterator[tuple[Log, SyncPlan]]:
        """Plan for each log what closes it; that may happen beside the loop, several at a time.

        Each step holds files open until its plan was run and `Log.closed` told.
        """
        for log in tuple(self.opened.values()):
            yield log, log.begin_close()

    def close(self, high_watermarks: Mapping[TopicPartition, Offset], *, all_recovered: bool = True) -> None:
        """Close the logs that are still open, write the checkpoints and the marker of a clean shutdown, unlock.

        After a crash, a log that nobody has opened has not been recovered: then there is no marker.
        """
        for log in self.opened.values():
            log.close()
        plan = self.pending_checkpoint(high_watermarks)
        plan.beside = TEMPORARY_SUFFIX  # a worker may still run a plan that was given up
        plan.run()
        self._put_in_place(plan)
        if self.clean or all_recovered:
            left = json.dumps({"version": 0, "brokerEpoch": self.broker_epoch}, separators=(",", ":"))
            write_file(self._disk, f"{self.folder}/{CLEAN_FILE}", left.encode())
            self._disk.sync_folder(self.folder)
        self.opened.clear()
        self._lock.release()

    def abandon(self) -> None:
        """Release everything and write nothing: the disk has failed, and the next start must recover."""
        for log in self.opened.values():
            log.release()
        self.opened.clear()
        self._lock.release()

    # Partitions

    def partitions(self) -> list[TopicPartition]:
        """List the partitions that have a folder here, by name."""
        found = []
        for name in self._disk.list(self.folder):
            topic, dash, number = name.rpartition("-")
            if dash and topic and number.isascii() and number.isdigit():
                found.append(TopicPartition(topic, int(number)))
        return found

    def topic_id(self, partition: TopicPartition) -> TopicId | None:
        """Read which topic a folder belongs to; None where a crash came before that was durable."""
        path = f"{self._folder_of(partition)}/{PARTITION_FILE}"
        try:
            return decode_topic_id(read_file(self._disk, path) or b"", path)
        except BadCheckpoint:
            return None

    def missing(self) -> dict[TopicPartition, Offset]:
        """Return the partitions that had durable records and have no folder, with the highest offset that is known.

        Not those that were deleted or set aside: a crash may have kept them from being forgotten.
        """
        names = set(self._disk.list(self.folder))
        renamed = [name for name in names if name.endswith((DELETED_FOLDER_SUFFIX, STRAY_FOLDER_SUFFIX))]
        return {
            partition: max(offset, self.high_watermark(partition), self._log_starts.get(partition, Offset(0)))
            for partition, offset in self._recovery_points.items()
            if offset > 0 and str(partition) not in names and not any(_is_of(name, partition) for name in renamed)
        }

    def resume(self, partition: TopicPartition, offset: Offset) -> None:
        """Note where a partition whose folder is gone begins when it is created: no offset is used twice.

        `write_forgotten` makes that durable.
        """
        self._resumed.add(partition)
        self._cleaned_offsets.pop(partition, None)
        for offsets in (self._recovery_points, self._high_watermarks, self._log_starts):
            offsets[partition] = offset
        self._generation += 1
        self._forgotten |= {name for name, _ in self._checkpoints()}

    def was_flushed(self, partition: TopicPartition) -> bool:
        """Return whether something of this partition was on the medium, and then its topic's id too."""
        return self._recovery_points.get(partition, Offset(0)) > 0

    def holds_batches(self, partition: TopicPartition) -> bool:
        """Return whether a segment of this partition begins with a whole batch."""
        folder = self._folder_of(partition)
        paths = (path_of(folder, base_offset, LOG_SUFFIX) for base_offset in list_folder(self._disk, folder).segments)
        return any(_begins_whole(self._disk, path) for path in paths)

    def size_of(self, partition: TopicPartition) -> int:
        """Count the bytes of a partition's segments, whether its log is open or not."""
        if (log := self.opened.get(partition)) is not None:
            return log.size
        folder = self._folder_of(partition)
        bases = list_folder(self._disk, folder).segments
        return sum(file_bytes(self._disk, path_of(folder, base_offset, LOG_SUFFIX)) for base_offset in bases)

    def recovery_point(self, partition: TopicPartition) -> Offset:
        """Return the offset below which a partition was on the medium when that was written down; 0 where none was."""
        return self._recovery_points.get(partition, Offset(0))

    def note_flushed(self, partition: TopicPartition, offset: Offset) -> None:
        """Note how far a log is flushed that is not opened here; the next checkpoint writes it down."""
        self._recovery_points[partition] = offset

    def lower_flushed(self, partition: TopicPartition, offset: Offset) -> None:
        """Note, durably, that a log is about to end here: a crash in between must not look like damage."""
        for name, offsets in (
            (RECOVERY_POINTS_FILE, self._recovery_points),
            (CLEANED_OFFSETS_FILE, self._cleaned_offsets),
        ):
            if offsets.get(partition, Offset(0)) > offset:
                offsets[partition] = offset
                self._generation += 1
                replace_file(self._disk, f"{self.folder}/{name}", encode_offsets(offsets))

    def high_watermark(self, partition: TopicPartition) -> Offset:
        """Return the high watermark that was written down last; 0 where none was."""
        return self._high_watermarks.get(partition, Offset(0))

    def cleaned_offset(self, partition: TopicPartition) -> Offset:
        """Return the offset below which a partition was compacted; 0 where it never was, or where it cannot be true."""
        cleaned, log = self._cleaned_offsets.get(partition, Offset(0)), self.opened.get(partition)
        return cleaned if log is None or cleaned <= log.log_end_offset else Offset(0)

    def note_cleaned(self, partition: TopicPartition, offset: Offset) -> None:
        """Note how far a partition is compacted; the next checkpoint writes it down."""
        self._cleaned_offsets[partition] = offset

    def create_log(self, partition: TopicPartition, topic_id: TopicId, config: TopicConfig, *, now_ms: int) -> Log:
        """Create a partition's folder and open its log; an existing folder is opened.

        Nothing is synced here: the log's first sync makes the folder and what is in it durable.
        """
        if partition in self.opened:
            return self.opened[partition]
        folder = self._folder_of(partition)
        if not self._disk.exists(folder):
            if partition not in self._resumed:
                # Offsets of an earlier partition of this name would make the new one look damaged.
                self.forget(partition)
            self.write_forgotten()
            self._disk.make_folder(folder)
            self._made.add(partition)
        log = self.open_log(partition, config, now_ms=now_ms)
        self._name_topic(partition, topic_id, log)
        return log

    def adopt_log(self, partition: TopicPartition, topic_id: TopicId, log: Log) -> None:
        """Adopt a log that was opened elsewhere."""
        assert partition not in self.opened
        log.segments.share(self._files)
        self.opened[partition] = log
        self._name_topic(partition, topic_id, log)

    def _name_topic(self, partition: TopicPartition, topic_id: TopicId, log: Log) -> None:
        """Write the topic's id into the folder, unless it is there."""
        try:
            if self.topic_id(partition) is None:
                log.segments.write_beside(PARTITION_FILE, encode_topic_id(topic_id))
        except OSError:  # a log that takes records without an id would be set aside after a crash
            del self.opened[partition]
            log.release()
            raise

    def open_log(self, partition: TopicPartition, config: TopicConfig, *, now_ms: int) -> Log:
        """Open a partition's log, recovering it after a crash; one that is open is given as it is."""
        log = self.opened.get(partition)
        if log is None:
            log = self.opened[partition] = self.opening(partition, config, now_ms=now_ms).open(self._disk, self._files)
        return log

    def opening(self, partition: TopicPartition, config: TopicConfig, *, now_ms: int) -> LogOpening:
        """Collect all that is needed to open a partition's log, here or elsewhere."""
        return LogOpening(
            partition,
            self._folder_of(partition),
            config,
            recovery_point=self._recovery_points.get(partition, Offset(0)),
            clean=self.clean,
            now_ms=now_ms,
            log_start_offset=self._log_starts.get(partition, Offset(0)),
            high_watermark=self.high_watermark(partition),
            folder_is_durable=partition not in self._made,
            compacted=partition in self._cleaned_offsets,
        )

    def truncate_log(self, partition: TopicPartition, offset: Offset, *, now_ms: int) -> None:
        """Cut a log's end off; its recovery point is lowered first, so that a crash does not look like damage."""
        log = self.opened[partition]
        if offset < log.log_end_offset:
            self.lower_flushed(partition, log.segments.start_of(offset))
            truncate(log, offset, now_ms=now_ms)

    def delete_logs(self, partitions: Iterable[TopicPartition], random: Random) -> Callable[[], None]:
        """Rename the partitions' folders; `remove_deleted` removes them later. None may be syncing.

        Return what waits until the new names are on the medium; it may run in a worker thread.

        After an OSError it may be called again: what was renamed already is left alone.
        """
        for partition in partitions:
            log = self.opened.pop(partition, None)
            if log is not None:
                log.release()
            if self._disk.exists(self._folder_of(partition)):
                self._rename_folder(partition, DELETED_FOLDER_SUFFIX, random)
        return partial(self._disk.sync_folder, self.folder)

    def set_aside(self, partition: TopicPartition, random: Random) -> str:
        """Rename a folder that belongs to no topic, so that it is kept and blocks nothing; return its new name.

        After a crash it may have to be done again.
        """
        return self._rename_folder(partition, STRAY_FOLDER_SUFFIX, random)

    def _rename_folder(self, partition: TopicPartition, ending: str, random: Random) -> str:
        suffix = f"-{partition.partition}.{random.getrandbits(128):032x}{ending}"
        name = partition.topic[: _FILE_NAME_CHARACTERS_MAX - len(suffix)] + suffix
        self._disk.rename(self._folder_of(partition), f"{self.folder}/{name}")
        self.forget(partition)
        return name

    def deleted_folders(self) -> list[str]:
        """List the folders of deleted partitions that still take up room."""
        names = self._disk.list(self.folder)
        return [f"{self.folder}/{name}" for name in names if name.endswith(DELETED_FOLDER_SUFFIX)]

    def remove_deleted(self, folders: list[str]) -> None:
        """Remove folders of deleted partitions; may run in a worker thread."""
        for folder in folders:
            self._disk.remove_folder(folder)

    def _folder_of(self, partition: TopicPartition) -> str:
        return f"{self.folder}/{partition}"

    # Checkpoints

    def pending_checkpoint(self, high_watermarks: Mapping[TopicPartition, Offset]) -> CheckpointPlan:
        """Plan the checkpoints as they are now; one plan at a time."""
        for partition, log in self.opened.items():
            self._recovery_points[partition] = log.flushed_offset
            self._log_starts[partition] = log.log_start_offset
        self._high_watermarks.update(high_watermarks)
        contents = [(f"{self.folder}/{name}", encode_offsets(offsets)) for name, offsets in self._checkpoints()]
        return CheckpointPlan(self._disk, self._generation, contents)

    def checkpointed(self, plan: CheckpointPlan) -> bool:
        """Put the files of a plan that was run in place, unless something was forgotten or lowered meanwhile."""
        if plan.generation != self._generation:
            return False
        self._put_in_place(plan)
        self._forgotten.clear()
        return True

    def _put_in_place(self, plan: CheckpointPlan) -> None:
        for path, _ in plan.files:
            self._disk.rename(path + plan.beside, path)
        self._disk.sync_folder(self.folder)

    def forget(self, partition: TopicPartition) -> None:
        """Drop a partition from the checkpoints; they are written when it matters, or at the next occasion."""
        self._resumed.discard(partition)
        for name, offsets in self._checkpoints():
            if offsets.pop(partition, None) is not None:
                self._generation += 1
                self._forgotten.add(name)

    @property
    def has_forgotten(self) -> bool:
        """Return whether a checkpoint on the medium may still speak of a partition that is gone."""
        return bool(self._forgotten)

    def write_forgotten(self) -> None:
        """Write the checkpoints that still speak of what is gone; most were written since, beside the loop."""
        if not self._forgotten:
            return
        for name, offsets in self._checkpoints():
            if name in self._forgotten:
                path = f"{self.folder}/{name}"
                write_durably(self._disk, path + TEMPORARY_SUFFIX, encode_offsets(offsets))
                self._disk.rename(path + TEMPORARY_SUFFIX, path)
        self._disk.sync_folder(self.folder)
        self._forgotten.clear()

    def _checkpoints(self) -> tuple[tuple[str, dict[TopicPartition, Offset]], ...]:
        return (
            (RECOVERY_POINTS_FILE, self._recovery_points),
            (HIGH_WATERMARKS_FILE, self._high_watermarks),  # before the log starts, which are believed below them
            (LOG_STARTS_FILE, self._log_starts),
            (CLEANED_OFFSETS_FILE, self._cleaned_offsets),
        )

    def _read_offsets(self, name: str) -> dict[TopicPartition, Offset]:
        path = f"{self.folder}/{name}"
        content = read_file(self._disk, path)
        if content is None:
            return {}
        try:
            return decode_offsets(content, path)
        except BadCheckpoint as bad:
            self.damage.append(str(bad))
            return {}


def _note_boot(disk: Disk, path: str) -> bool:
    """Return whether the system still runs that is noted in the file, and note the one that runs now."""
    noted, runs = read_file(disk, path), disk.boot_id().encode()
    if runs and noted != runs:
        try:
            write_file(disk, path, runs)
        except OSError as error:  # a full disk is no reason not to start
            if not may_pass(error):
                raise
    return bool(runs) and noted == runs


def _begins_whole(disk: Disk, path: str) -> bool:
    file = disk.open(path)
    try:
        return any(checksum(batch) == header.crc for _, header, batch in islice(scan_batches(file, 0, file.size()), 1))
    finally:
        file.close()


def _is_of(name: str, partition: TopicPartition) -> bool:
    """Return whether a folder that was deleted or set aside was this partition's; long names are cut."""
    topic, number, _ = name.rpartition(f"-{partition.partition}.")
    is_cut = len(name) == _FILE_NAME_CHARACTERS_MAX and partition.topic.startswith(topic)
    return bool(number) and (topic == partition.topic or is_cut)


def _make_folder_durably(disk: Disk, folder: str) -> None:
    """Create the folder and its parents, and sync each folder that got a new name."""
    missing = []
    while folder and not disk.exists(folder):
        missing.append(folder)
        folder = folder.rpartition("/")[0]
    for path in reversed(missing):
        disk.make_folder(path)
        disk.sync_folder(path.rpartition("/")[0] or ("/" if path.startswith("/") else "."))
