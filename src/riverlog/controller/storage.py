"""The folder of the metadata log: its batches, its snapshots, and the vote. Reads and writes; decides nothing.

Folder, batches, snapshots (`<end offset>-<epoch>.checkpoint`) and `quorum-state` have Kafka's form. A folder that
cannot be read whole raises BadMetadata and is left as it is. Whoever writes keeps to one batch that is not flushed: so
a torn write can only be the last batch, and a bad batch with a good one behind it is damage, not a crash.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

from riverlog.controller.folder_check import CheckedFolder, voters_in_snapshot
from riverlog.controller.limits import RECORDS_LOADED_PER_TURN
from riverlog.controller.snapshot_files import (
    BadMetadata,
    VotersSaid,
    decode_snapshot,
    snapshot_name,
)
from riverlog.log.checkpoint import PARTITION_FILE, TEMPORARY_SUFFIX, read_file, write_durably
from riverlog.log.log import Log
from riverlog.log.segment_deletion import enforce_retention, find_expired
from riverlog.log.truncation import truncate
from riverlog.metadata.encoding import BadMetadataRecord, decode_record
from riverlog.metadata.records import MetadataRecord, TransactionRecord
from riverlog.model.disk_errors import NO_ROOM, may_pass
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import LeaderEpoch, Offset, TopicPartition
from riverlog.model.ports import Buffer, Clock, Disk
from riverlog.model.settings import TopicConfig
from riverlog.raft.control_records import BadControlRecord
from riverlog.raft.log_tail import LogTail, SnapshotId
from riverlog.raft.quorum_state import QUORUM_STATE_FILE
from riverlog.records.batch import headers, read_header
from riverlog.records.errors import CorruptBatch
from riverlog.records.record import read_batches

METADATA_PARTITION: Final = TopicPartition("__cluster_metadata", 0)
METADATA_FOLDER: Final = str(METADATA_PARTITION)
METADATA_CONFIG: Final = TopicConfig(retention_ms=-1, segment_bytes=256 * 1024 * 1024, file_delete_delay_ms=0)
_PART_SUFFIX: Final = ".part"
_READ_BYTES: Final = 1024 * 1024


class MetadataStorage:
    """The metadata log on disk. Made by `MetadataStorage.open`."""

    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        log: Log,
        config: TopicConfig,
        note_flushed: Callable[[Offset], None],
        lower_flushed: Callable[[Offset], None],
        *,
        snapshots: dict[SnapshotId, int],
    ) -> None:
        self.disk = disk
        self.log = log
        self.snapshots = snapshots
        """The size in bytes of each snapshot, oldest first."""
        self.note_flushed = note_flushed
        self.is_being_replaced = False
        """A fetched snapshot takes the place of all files, beside the loop: nothing else of them counts."""
        self.lost_names: OSError | None = None
        """Names may be gone from the medium, perhaps that of the segment that is written to: no flush counts."""
        self._lower_flushed = lower_flushed
        self._clock = clock
        self._config = config

    @classmethod
    def open(
        cls,
        disk: Disk,
        clock: Clock,
        found: CheckedFolder,
        *,
        config: TopicConfig = METADATA_CONFIG,
        note_flushed: Callable[[Offset], None] = lambda _offset: None,
        lower_flushed: Callable[[Offset], None] = lambda _offset: None,
    ) -> "MetadataStorage":
        """Open or begin the log in a folder that was checked.

        `note_flushed` is told how far all is on the medium from now on, and `lower_flushed`, which writes it down
        durably, where it ends before the log is cut off there. Raises BadMetadata where something is missing or
        damaged.
        """
        folder, newest = found.folder, found.newest_snapshot
        begins_at = Offset(0) if newest is None else newest.end_offset
        log = _open_log(disk, clock, folder, config, begins_at)
        if log.damage:
            raise BadMetadata(folder, log.damage[0])
        if log.log_start_offset > begins_at:
            raise BadMetadata(
                folder, f"its records begin at {log.log_start_offset}, but are needed from {begins_at} on"
            )
        return cls(disk, clock, log, config, note_flushed, lower_flushed, snapshots=dict(found.snapshots))

    @property
    def folder(self) -> str:
        return self.log.folder

    @property
    def newest_snapshot(self) -> SnapshotId | None:
        return next(reversed(self.snapshots), None)

    @property
    def end_offset(self) -> Offset:
        """Return the offset behind the last record."""
        return self.log.log_end_offset

    def tail(self) -> LogTail:
        """Return what Raft must know of the log."""
        newest = self.newest_snapshot
        return LogTail(
            start=self.log.log_start_offset,
            end=self.log.log_end_offset,
            epochs=self.log.epochs.entries(),
            snapshots=[] if newest is None else [(newest, self.snapshots[newest])],
        )

    # -- batches

    def append(self, batch: memoryview, epoch: LeaderEpoch) -> Offset:
        """Append a batch of the leader's own, giving it its offsets; Refusal where there is no room."""
        try:
            self.log.append(batch, read_header(batch), leader_epoch=epoch, now_ms=self._clock.wall_ms())
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            raise no_room(self.folder, error) from error
        return self.end_offset

    def append_fetched(self, batch: memoryview) -> None:
        """Append a batch that has its offsets."""
        self.log.append_assigned(batch, now_ms=self._clock.wall_ms())

    def truncate(self, end: Offset) -> None:
        """Cut the log off, durably."""
        self._lower_flushed(end)
        truncate(self.log, end, now_ms=self._clock.wall_ms())

    def read(self, offset: Offset, bytes_max: int) -> bytes:
        """Read whole batches from an offset on, at least one."""
        found = self.log.read(offset, bytes_max=min(bytes_max, _READ_BYTES), upto=self.end_offset).records
        return b"" if found is None else found.file.read(found.position, found.size)

    def records(
        self, offset: Offset, upto: Offset, *, piece_max: int = RECORDS_LOADED_PER_TURN
    ) -> Iterator[tuple[Offset | None, list[MetadataRecord | TransactionRecord]]]:
        """Read the batches below `upto`, a large one in pieces; of control batches the records are left out.

        With the last piece of a batch comes the offset behind it. A batch may straddle the offset that is begun at;
        what lies below is left out. BadMetadata where it cannot be read.
        """
        try:
            while offset < upto:
                found = self.log.read(offset, bytes_max=_READ_BYTES, upto=upto).records
                if found is None:
                    raise BadMetadata(self.folder, f"records from offset {offset} on are missing")
                for header, records in read_batches(found.file.read(found.position, found.size)):
                    begins_at, offset = offset, header.next_offset
                    values = [] if header.is_control else [each.value for each in records if each.offset >= begins_at]
                    while len(values) > piece_max:
                        yield None, [decode_record(value or b"") for value in values[:piece_max]]
                        del values[:piece_max]
                    yield offset, [decode_record(value or b"") for value in values]
        except (BadMetadataRecord, BadControlRecord, CorruptBatch, Refusal) as error:
            raise BadMetadata(self.folder, str(error)) from error

    # -- snapshots

    def path_of(self, snapshot: SnapshotId) -> str:
        return f"{self.folder}/{snapshot_name(snapshot)}"

    def snapshot_records(self, snapshot: SnapshotId) -> Iterator[MetadataRecord | TransactionRecord]:
        """Read a snapshot; BadMetadata where it cannot be."""
        content = read_file(self.disk, self.path_of(snapshot))
        if content is None:
            raise BadMetadata(self.folder, f"{snapshot_name(snapshot)} is missing")
        try:
            yield from decode_snapshot(content)
        except (BadMetadataRecord, BadControlRecord, CorruptBatch) as error:
            raise BadMetadata(self.folder, str(error)) from error

    def write_snapshot(self, snapshot: SnapshotId, content: bytes) -> None:
        """Write a whole snapshot, durably; waits for the disk."""
        path = self.path_of(snapshot)
        write_durably(self.disk, path + TEMPORARY_SUFFIX, content)
        self.disk.rename(path + TEMPORARY_SUFFIX, path)

    def write_part(self, snapshot: SnapshotId, position: int, content: Buffer) -> None:
        """Write a piece of a snapshot that is being fetched; position 0 begins it anew."""
        file = self.disk.open(self.path_of(snapshot) + _PART_SUFFIX, create=True)
        try:
            if position == 0:
                file.truncate(0)
            file.write(position, [content])
        finally:
            file.close()

    def read_part(self, snapshot: SnapshotId) -> list[VotersSaid]:
        """Check a snapshot that was fetched, and return what it says of voters; BadMetadata where it is not whole."""
        content = read_file(self.disk, self.path_of(snapshot) + _PART_SUFFIX) or b""
        try:
            for _record in decode_snapshot(content):
                pass
        except (BadMetadataRecord, BadControlRecord, CorruptBatch) as error:
            raise BadMetadata(self.folder, str(error)) from error
        return voters_in_snapshot(self.folder, content, snapshot)

    def install(self, snapshot: SnapshotId) -> None:
        """Put a snapshot that was fetched in the place of the whole log, durably; waits for the disk."""
        self.is_being_replaced = True
        path = self.path_of(snapshot)
        file = self.disk.open(path + _PART_SUFFIX)
        try:
            file.sync()
            size = file.size()
        finally:
            file.close()
        self.disk.rename(path + _PART_SUFFIX, path)
        self.disk.sync_folder(self.folder)
        self.log.release()
        kept = (QUORUM_STATE_FILE, PARTITION_FILE, snapshot_name(snapshot))
        for name in self.disk.list(self.folder):
            if name not in kept:
                with suppress(FileNotFoundError):  # a snapshot of this node's own may be written meanwhile
                    self.disk.remove(f"{self.folder}/{name}")
        self.log = _open_log(self.disk, self._clock, self.folder, self._config, snapshot.end_offset)
        self.log.flush()
        self.snapshots = {snapshot: size}
        self.is_being_replaced = False

    def is_replaced(self, end: Offset) -> bool:
        """Return whether a fetched snapshot makes those that end there needless, or is about to."""
        return self.is_being_replaced or self.log.log_start_offset > end

    def read_snapshot(self, snapshot: SnapshotId, position: int, bytes_max: int) -> bytes:
        """Read a piece of a snapshot; waits for the disk."""
        file = self.disk.open(self.path_of(snapshot))
        try:
            return file.read(position, min(bytes_max, _READ_BYTES))
        finally:
            file.close()

    def begin_behind(self, snapshot: SnapshotId) -> None:
        """Begin the log where a snapshot ends that is on the medium; no batch may be waiting for a flush."""
        self.log.roll(self._clock.wall_ms())
        self.log.advance_log_start(snapshot.end_offset)

    def has_needless_segments(self, upto: Offset) -> bool:
        return bool(find_expired(self.log, self._clock.wall_ms(), upto=upto))

    def delete_segment(self, upto: Offset) -> None:
        """Delete the oldest segment below an offset; all names must be durable, or a crash may leave a gap."""
        now_ms = self._clock.wall_ms()
        enforce_retention(self.log, now_ms, upto=upto, segments_max=1)
        self.log.segments.remove_deleted(now_ms)

    def remove_older_snapshots(self) -> None:
        """Remove all snapshots but the newest."""
        newest = self.newest_snapshot
        for snapshot in [each for each in self.snapshots if each != newest]:
            self.disk.remove(self.path_of(snapshot))
            del self.snapshots[snapshot]

    # -- the vote

    def save_vote(self, content: bytes) -> None:
        """Write `quorum-state`, durably; waits for the disk."""
        path = f"{self.folder}/{QUORUM_STATE_FILE}"
        write_durably(self.disk, path + TEMPORARY_SUFFIX, content)
        self.disk.rename(path + TEMPORARY_SUFFIX, path)
        self.sync_names()

    def sync_names(self) -> None:
        """Wait until all names are durable. Those that a failure loses no later attempt brings back."""
        try:
            self.disk.sync_folder(self.folder)
        except OSError as error:
            if not may_pass(error):
                self.lost_names = error
            raise

    def close(self) -> None:
        """Write down what opening again would otherwise have to find out, and release the files."""
        try:
            self.log.close()
        except OSError:
            pass  # every record is on the medium; only the next start will take longer
        self.log.release()


def no_room(folder: str, error: OSError) -> Refusal:
    """Return the refusal of records for which the disk has no room."""
    return Refusal(
        ErrorCode.KAFKA_STORAGE_ERROR, f"There is no room for metadata in {folder} ({error.strerror}); free some."
    )


def batches_in(content: memoryview) -> Iterator[memoryview]:
    """Split fetched bytes into their batches."""
    for position, header in headers(content):
        yield content[position : position + header.size]


def _open_log(disk: Disk, clock: Clock, folder: str, config: TopicConfig, begins_at: Offset) -> Log:
    return Log.open(
        disk,
        folder,
        config,
        recovery_point=begins_at,
        clean=False,
        now_ms=clock.wall_ms(),
        log_start_offset=begins_at,  # what the snapshot replaces may be half deleted
    )
