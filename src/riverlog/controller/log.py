"""The metadata log of a node that is its own quorum: a folder beside the partitions, flushed before every reply.

One write is under way at a time and is one batch: what is submitted meanwhile goes into the next one. So a torn
write can only be the last batch, and a bad batch with a good one behind it is damage, not a crash. What is not possible
for want of descriptors or memory is tried again for some seconds; a failed flush never is. Snapshots stand
beside the segments (`<end offset>-<epoch>.checkpoint`) and replace what lies below them. Folder, records and
snapshots have Kafka's form. A log that cannot be read whole raises BadMetadata and is left as it is.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, TypeVar

from riverlog.controller.limits import METADATA_TRIES_MAX
from riverlog.controller.log_check import check_segments, voters_in_snapshot
from riverlog.controller.quorum import MetadataQuorum, QuorumPast, no_room
from riverlog.controller.snapshot_files import (
    SNAPSHOT_SUFFIX,
    BadMetadata,
    VotersSaid,
    decode_snapshot,
    encode_snapshot,
    snapshot_id,
    snapshot_name,
)
from riverlog.log.checkpoint import TEMPORARY_SUFFIX, read_file, write_durably
from riverlog.log.log import Log
from riverlog.log.segment_deletion import enforce_retention, find_expired
from riverlog.metadata.encoding import BadMetadataRecord, decode_record, encode_record
from riverlog.metadata.image import MetadataImage
from riverlog.metadata.records import MetadataRecord, TransactionRecord
from riverlog.metadata.snapshot import snapshot_records
from riverlog.metadata.transactions import decided
from riverlog.model.disk_errors import NO_ROOM, DiskTrouble, judge, may_pass
from riverlog.model.errors import Refusal
from riverlog.model.ids import Offset, TopicPartition
from riverlog.model.ports import Clock, Disk, Random, Workers
from riverlog.model.settings import TopicConfig
from riverlog.observe.logging import get_logger
from riverlog.raft.control_records import BadControlRecord
from riverlog.raft.log_tail import SnapshotId
from riverlog.raft.voters import Voter
from riverlog.records.batch import read_header
from riverlog.records.errors import CorruptBatch
from riverlog.records.record import BatchBuilder, read_batches

METADATA_PARTITION: Final = TopicPartition("__cluster_metadata", 0)
METADATA_FOLDER: Final = str(METADATA_PARTITION)
METADATA_CONFIG: Final = TopicConfig(retention_ms=-1, segment_bytes=256 * 1024 * 1024, file_delete_delay_ms=0)
_BEGINNING: Final = Offset(0)
_TRY_AGAIN_SECONDS: Final = 0.1
_READ_BYTES: Final = 4 * 1024 * 1024


T = TypeVar("T")


class MetadataLog:
    """Appends metadata records and gives them back. Made by `MetadataLog.open`."""

    def __init__(
        self,
        log: Log,
        disk: Disk,
        clock: Clock,
        workers: Workers,
        quorum: MetadataQuorum,
        note_flushed: Callable[[Offset], None],
        *,
        snapshots: list[str],
    ) -> None:
        self.quorum = quorum
        self._note_flushed = note_flushed
        self._log = log
        self._disk = disk
        self._clock = clock
        self._workers = workers
        self._snapshot = snapshots[-1] if snapshots else None
        self._replaced = snapshots[:-1]  # by the newest one: a crash has left them
        self._waiting: list[tuple[Sequence[MetadataRecord], asyncio.Future[None]]] = []
        self._rounds: asyncio.Task[None] | None = None
        self._snapshotting: asyncio.Task[None] | None = None
        self._failure: Exception | None = None
        self._refusal: Refusal | None = None  # of records that their owner has not heard of: its state is ahead of ours
        self._closing = False
        self._logger = get_logger("riverlog.metadata")

    @classmethod
    def open(
        cls,
        disk: Disk,
        clock: Clock,
        workers: Workers,
        folder: str,
        *,
        voter: Voter,
        random: Random,
        flushed: Offset = _BEGINNING,
        after_clean_stop: bool = False,
        config: TopicConfig = METADATA_CONFIG,
        note_flushed: Callable[[Offset], None] = lambda _offset: None,
    ) -> "MetadataLog":
        """Open or begin the log in this folder, on which this node votes; `lead` comes before the first record.

        All below `flushed` is known to have been on the medium, and `note_flushed` is told how far that is from now on.
        Raises BadMetadata where something of it is missing or damaged, DirectoryRefused where it is another voter's.
        """
        disk.make_folder(folder)
        snapshots = sorted(f"{folder}/{name}" for name in disk.list(folder) if name.endswith(SNAPSHOT_SUFFIX))
        begins_at, sizes, said = _BEGINNING, dict[SnapshotId, int](), list[VotersSaid]()
        if snapshots:
            newest = snapshot_id(snapshots[-1])
            begins_at = newest.end_offset
            content = read_file(disk, snapshots[-1]) or b""
            sizes[newest] = len(content)
            said += voters_in_snapshot(folder, content, newest)
        found = check_segments(disk, folder, after_clean_stop=after_clean_stop)
        if max(found.end, begins_at) < flushed:
            raise BadMetadata(
                folder, f"its records end at offset {max(found.end, begins_at)}, and were there up to {flushed}"
            )
        said += [each for each in found.said if each.offset >= begins_at]
        past = QuorumPast.read(disk, folder, voter, said)
        log = Log.open(
            disk,
            folder,
            config,
            recovery_point=begins_at,
            clean=False,
            now_ms=clock.wall_ms(),
            log_start_offset=begins_at,  # what the snapshot replaces may be half deleted
        )
        if log.damage:
            raise BadMetadata(folder, log.damage[0])
        if log.log_start_offset > begins_at:
            raise BadMetadata(
                folder, f"its records begin at {log.log_start_offset}, but are needed from {begins_at} on"
            )
        quorum = MetadataQuorum(log, disk, clock, random, voter=voter, past=past, snapshots=sizes.items())
        return cls(log, disk, clock, workers, quorum, note_flushed, snapshots=snapshots)

    def lead(self) -> None:
        """Begin an epoch and lead it, once everything that is here was read; waits for the disk."""
        try:
            self.quorum.start()
        except Exception as error:  # nothing may be written behind what is half there
            self._failure = error
            raise
        self._note_flushed(self.quorum.high_watermark)
        for path in self._replaced:  # a newer snapshot was read whole
            self._disk.remove(path)
        self._replaced.clear()

    @property
    def end_offset(self) -> Offset:
        """Return the offset behind the last record."""
        return self._log.log_end_offset

    @property
    def bytes_since_snapshot(self) -> int:
        """Count what has to be replayed on top of the last snapshot."""
        return self._log.size

    def append(self, records: Sequence[MetadataRecord]) -> "asyncio.Future[None]":
        """Take the records; they are committed once they are on the medium.

        After a Refusal none is taken until the owner has replayed: they might rest on those that were not written.
        """
        if self._failure is not None:
            raise self._failure
        if self._refusal is not None:
            raise self._refusal
        committed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((records, committed))
        if self._rounds is None:
            self._rounds = asyncio.get_running_loop().create_task(self._write_rounds())
        return committed

    def replay(self) -> Iterator[MetadataRecord]:
        """Return the records of the snapshot and those behind it."""
        self._refusal = None
        offset = self._log.log_start_offset
        try:
            if self._snapshot is not None:
                offset = snapshot_id(self._snapshot).end_offset
                content = read_file(self._disk, self._snapshot)
                assert content is not None
                yield from decided(decode_snapshot(content))
            yield from decided(self._read_from(offset))
        except (BadMetadataRecord, BadControlRecord, CorruptBatch, Refusal) as error:
            raise BadMetadata(self._log.folder, str(error)) from error

    def begin_snapshot(self, image: MetadataImage) -> None:
        """Write a snapshot of this image, which is that of all records so far, and let go of what it replaces."""
        if self._snapshotting is None and self._rounds is None:
            self._snapshotting = asyncio.get_running_loop().create_task(self._write_snapshot(image, self.end_offset))

    async def close(self) -> None:
        """Finish what is under way and let go of the files."""
        self._closing = True
        for task in (self._rounds, self._snapshotting):
            if task is not None:
                await asyncio.wait([task])
        try:
            if self._failure is None:
                self._log.close()
        except OSError:
            pass  # every record is on the medium; only the next start will take longer
        self._log.release()

    async def _write_rounds(self) -> None:
        """Write what waits, as one batch, until nothing does."""
        while self._waiting:
            group, self._waiting = self._waiting, []
            try:
                records = [record for records, _ in group for record in records]
                await self._insisted(partial(self._write, records))
                plan = await self._insisted(self._log.pending_sync)
                await self._insisted(plan.run, beside=True)
                if self._failure is not None:  # names were lost meanwhile, perhaps that of the segment written to
                    raise self._failure
                self._log.synced(plan)
                self.quorum.flushed(plan.upto)
                assert self.quorum.high_watermark == plan.upto, "what is flushed is committed where nobody else votes"
                self._note_flushed(plan.upto)
            except Exception as error:
                self._fail(group, error)
                break
            for _, committed in group:
                if not committed.done():
                    committed.set_result(None)
        self._rounds = None

    async def _insisted(self, work: Callable[[], T], *, beside: bool = False) -> T:
        """Do a piece of work, on the loop or beside it; again for a while where something is in the way that may pass.

        Each piece leaves everything as it is when it cannot begin, and goes on where it was.
        """
        tries_left = METADATA_TRIES_MAX
        while True:
            try:
                return await self._workers.run(work) if beside else work()
            except OSError as error:
                if judge(error) is not DiskTrouble.HINDERED or self._closing or not tries_left:
                    raise
                if tries_left == METADATA_TRIES_MAX:
                    self._logger.warning("metadata wait for the disk", detail=str(error))
            tries_left -= 1
            await asyncio.sleep(_TRY_AGAIN_SECONDS)

    def _write(self, records: Sequence[MetadataRecord]) -> None:
        now_ms, epoch = self._clock.wall_ms(), self.quorum.epoch
        builder = BatchBuilder()
        for record in records:
            builder.append(None, encode_record(record), timestamp_ms=now_ms)
        batch = memoryview(builder.build(leader_epoch=epoch))
        try:
            self._log.append(batch, read_header(batch), leader_epoch=epoch, now_ms=now_ms)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            raise no_room(self._log.folder, error) from error
        self.quorum.appended(len(records))

    def _fail(self, group: list[tuple[Sequence[MetadataRecord], asyncio.Future[None]]], error: Exception) -> None:
        """Fail all that is under way; only a full disk is something that the log can go on after."""
        if isinstance(error, Refusal):
            self._refusal = error
        else:
            self._failure = error
        failed, self._waiting = group + self._waiting, []
        for _, committed in failed:
            if not committed.done():
                committed.set_exception(error)

    def _read_from(self, offset: Offset) -> Iterator[MetadataRecord | TransactionRecord]:
        end = self._log.log_end_offset
        while offset < end:
            found = self._log.read(offset, bytes_max=_READ_BYTES, upto=end).records
            if found is None:
                raise BadMetadata(self._log.folder, f"records from offset {offset} on are missing")
            for header, records in read_batches(found.file.read(found.position, found.size)):
                for record in records:
                    # A batch may straddle the snapshot's end; what lies below it is in the snapshot.
                    if record.offset >= offset and not header.is_control:
                        yield decode_record(record.value or b"")
                offset = header.next_offset

    async def _write_snapshot(self, image: MetadataImage, end: Offset) -> None:
        quorum, timestamp_ms = self.quorum, self._clock.wall_ms()
        snapshot = SnapshotId(end, self._log.epochs.of(Offset(end - 1)))
        path = f"{self._log.folder}/{snapshot_name(snapshot)}"
        voters, kraft_version = quorum.voters, quorum.kraft_version

        def write() -> int:
            beside = path + TEMPORARY_SUFFIX
            content = encode_snapshot(
                snapshot_records(image), snapshot.epoch, timestamp_ms, voters=voters, kraft_version=kraft_version
            )
            write_durably(self._disk, beside, content)
            self._disk.rename(beside, path)
            self._sync_names()
            return len(content)

        try:
            quorum.snapshot_taken(snapshot, await self._workers.run(write))
            while self._rounds is not None:
                # Only the last segment can end with a torn batch: none may be under way when another one is begun.
                await asyncio.wait([self._rounds])
            if self._failure is not None:
                return
            self._log.roll(timestamp_ms)
            replaced, self._snapshot = self._snapshot, path
            self._log.advance_log_start(end)
            quorum.shortened(end)
            while find_expired(self._log, timestamp_ms, upto=end):
                # All names are durable before each one goes: a log without any, or with a gap, is damaged.
                await self._workers.run(self._sync_names)
                enforce_retention(self._log, timestamp_ms, upto=end, segments_max=1)
            self._log.segments.remove_deleted(timestamp_ms)
            if replaced is not None and replaced != path:
                self._disk.remove(replaced)
        except OSError as error:
            if self._failure is not None or not may_pass(error):
                self._fail([], error)
            # Otherwise all is as it was, and the next occasion tries again.
        finally:
            self._snapshotting = None

    def _sync_names(self) -> None:
        """Wait until all names are durable, in a worker. Those that a failure loses no later attempt brings back."""
        try:
            self._disk.sync_folder(self._log.folder)
        except OSError as error:
            if not may_pass(error):
                self._failure = error
            raise
