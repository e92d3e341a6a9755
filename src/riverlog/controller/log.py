"""The metadata log as the controller writes it: what is submitted together becomes one batch, committed by the quorum.

What waits while a batch is flushed goes into the next one. Each future ends when its records are committed; where the
leadership is lost before that, their outcome is not known, and that is what whoever waits is told. Snapshots are
written beside the log and replace what lies below them.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from riverlog.controller.limits import METADATA_BATCH_BYTES
from riverlog.controller.quorum import MetadataQuorum
from riverlog.controller.snapshot_files import encode_snapshot
from riverlog.controller.storage import MetadataStorage
from riverlog.metadata.encoding import encode_record
from riverlog.metadata.image import MetadataImage
from riverlog.metadata.limits import RECORDS_PER_BATCH_MAX
from riverlog.metadata.records import AbortTransactionRecord, MetadataRecord, TransactionRecord
from riverlog.metadata.snapshot import snapshot_records
from riverlog.metadata.transactions import batches
from riverlog.model.disk_errors import may_pass
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import Offset
from riverlog.model.machine import Instant
from riverlog.model.ports import Clock, Workers
from riverlog.raft.log_tail import SnapshotId
from riverlog.records.record import BatchBuilder


class NotController(Refusal):
    """This node decides nothing: another one does, or nobody for the moment. Nothing was done."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.NOT_CONTROLLER, "This node is not the active controller; ask the one that is.")


class OutcomeUnknown(Refusal):
    """Records were written, and this node has lost the lead before they were committed."""

    def __init__(self) -> None:
        super().__init__(
            ErrorCode.REQUEST_TIMED_OUT,
            "The controller lost its leadership meanwhile: whether this was done is not known; look before a retry.",
        )


class _Submitted(NamedTuple):
    """Records that go into one batch, and who waits for them; nobody, where more of the same decision follow."""

    records: Sequence[MetadataRecord | TransactionRecord]
    committed: "asyncio.Future[None] | None"
    at: Instant
    """When they were decided."""


class _Written(NamedTuple):
    """A batch on its way to a majority."""

    end: Offset
    group: list[_Submitted]
    at: Instant


class MetadataLog:
    """Appends metadata records where this node leads, and tells when more is committed."""

    def __init__(self, quorum: MetadataQuorum, clock: Clock, workers: Workers) -> None:
        self.quorum = quorum
        self.resolved_end = Offset(0)
        """The end of the last batch whose futures have ended well: whoever submitted has seen everything below."""
        self.changed: Callable[[], None] = lambda: None
        """Called when more is committed, or somebody else leads."""
        self.was_installed: Callable[[], None] = lambda: None
        """Called when a snapshot has taken the place of the log."""
        self.was_stalled: Callable[[float], None] = lambda _seconds: None
        """Called when this process stood still for so long."""
        self.snapshot_at = clock.monotonic()
        """When this node made its last snapshot, or started."""
        self._clock = clock
        self._workers = workers
        self._waiting: list[_Submitted] = []
        self._batch: tuple[int, memoryview] | None = None  # of the first so many that wait
        self._written: deque[_Written] = deque()
        self._refusal: Refusal | None = None  # of records that their owner has not heard of: its state is ahead of ours
        self._leads = False
        self._snapshotting: asyncio.Task[None] | None = None
        self.failed_with: Callable[[Exception], None] = lambda _error: None

    @property
    def storage(self) -> MetadataStorage:
        return self.quorum.storage

    @property
    def end_offset(self) -> Offset:
        """Return the offset behind the last record."""
        return self.storage.end_offset

    @property
    def next_offset(self) -> Offset:
        """Return the offset that the next record gets, unless the voters change meanwhile."""
        return Offset(self.end_offset + sum(len(each.records) for each in self._waiting))

    @property
    def bytes_since_snapshot(self) -> int:
        """Count what has to be replayed on top of the last snapshot."""
        return self.storage.log.size

    # -- the runner's

    def lead(self) -> None:
        """Take records from now on; all that is in the log is committed, and known to whoever submits."""
        assert not self._waiting
        assert not self._written
        self._leads, self._refusal = True, None
        self.resolved_end = self.quorum.high_watermark

    def append(self, records: Sequence[MetadataRecord]) -> "asyncio.Future[None]":
        """Take the records; they are committed once a majority has them on the medium.

        After a Refusal none is taken until `lead`: they might rest on those that were not written.
        """
        if self.quorum.failure is not None:
            raise self.quorum.failure
        if self._refusal is not None:
            raise self._refusal
        if not self._leads:
            raise NotController
        committed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        *begin, last = batches(records, RECORDS_PER_BATCH_MAX)
        now = Instant(self._clock.monotonic())
        self._waiting += [_Submitted(each, None, now) for each in begin]
        self._waiting.append(_Submitted(last, committed, now))
        self.quorum.write_soon()
        return committed

    def abort_transaction(self) -> None:
        """End a transaction that an earlier leader began: without this all records to come would belong to it."""
        aborted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Submitted((AbortTransactionRecord(),), aborted, Instant(self._clock.monotonic())))
        self.quorum.write_soon()

    def replay(self) -> Iterator[MetadataRecord]:
        """Return nothing: the machine begins with the image that all committed records came to."""
        return iter(())

    # -- the quorum's

    def next_batch(self) -> memoryview | None:
        """Return the records that wait, as one batch; the same ones until they are written or refused."""
        if not self._waiting or not self._leads or self._refusal is not None:
            return None
        if self._batch is None:
            builder, now_ms, count, size = BatchBuilder(), self._clock.wall_ms(), 0, 0
            for submitted in self._waiting:
                if builder.count and builder.count + len(submitted.records) > RECORDS_PER_BATCH_MAX:
                    break
                for record in submitted.records:
                    value = encode_record(record)
                    builder.append(None, value, timestamp_ms=now_ms)
                    size += len(value)
                count += 1
                if size > METADATA_BATCH_BYTES:
                    break
            self._batch = (count, memoryview(builder.build(leader_epoch=self.quorum.epoch)))
        return self._batch[1]

    def written(self, end: Offset) -> None:
        """Note that the batch is in the log, and ends there."""
        now, group = Instant(self._clock.monotonic()), self._taken()
        self._written.append(_Written(end, group, now))
        self.quorum.stats.queue.observe(now - group[0].at)

    def refused(self, refusal: Refusal) -> None:
        """Fail what waits, once it is known what became of what was written before it."""
        self._refusal = refusal
        if not self._written:
            self._give_up(refusal)

    def committed(self, high_watermark: Offset) -> None:
        """End the futures of what is committed."""
        while self._written and self._written[0].end <= high_watermark:
            done = self._written.popleft()
            self.quorum.stats.commits.observe(self._clock.monotonic() - done.at)
            if done.group[-1].committed is not None:  # otherwise the rest of a decision follows
                self.resolved_end = done.end
            for _, committed, _ in done.group:
                if committed is not None and not committed.done():
                    committed.set_result(None)
        if self._refusal is not None and self._leads and not self._written:
            self._give_up(self._refusal)
        asyncio.get_running_loop().call_soon(self.changed)

    def leadership_changed(self) -> None:
        """Fail what is not committed, if this node leads no longer."""
        if self._leads and not self.quorum.leads:
            self._give_up(OutcomeUnknown() if self._written else NotController())
        asyncio.get_running_loop().call_soon(self.changed)

    def installed(self) -> None:
        """Have the snapshot read that has taken the place of the log."""
        self.was_installed()

    def stalled(self, seconds: float) -> None:
        """Note that this process stood still for so long."""
        self.was_stalled(seconds)

    def failed(self, error: Exception) -> None:
        """Fail everything, for good."""
        self._give_up(error)
        self.failed_with(error)

    def _taken(self) -> list[_Submitted]:
        """Take what the batch is made of away from what waits."""
        assert self._batch is not None
        (count, _), self._batch = self._batch, None
        group, self._waiting = self._waiting[:count], self._waiting[count:]
        return group

    def _give_up(self, error: Exception) -> None:
        """Fail what is not committed; nothing is taken, and nothing resolved, until `lead`."""
        self._leads, self._batch = False, None
        groups = [*(done.group for done in self._written), self._waiting]
        self._written.clear()
        self._waiting = []
        for group in groups:
            for _, committed, _ in group:
                if committed is not None and not committed.done():
                    committed.set_exception(error)
                    committed.exception()  # the runner that waited may be gone

    # -- snapshots

    def begin_snapshot(self, image: MetadataImage, end: Offset) -> None:
        """Write a snapshot of this image, which all records below `end` came to, and let go of what it replaces."""
        newest = self.storage.newest_snapshot
        is_new = newest is None or newest.end_offset < end
        if self._snapshotting is None and is_new and not self.quorum.is_installing:
            self._snapshotting = asyncio.get_running_loop().create_task(self._write_snapshot(image, end))

    @property
    def is_writing_snapshot(self) -> bool:
        return self._snapshotting is not None

    async def close(self) -> None:
        """Finish what is under way and let go of the files."""
        if self._snapshotting is not None:
            await asyncio.wait([self._snapshotting])
        await self.quorum.close()

    async def _write_snapshot(self, image: MetadataImage, end: Offset) -> None:
        quorum, storage, timestamp_ms = self.quorum, self.storage, self._clock.wall_ms()
        snapshot = SnapshotId(end, storage.log.epochs.of(Offset(end - 1)))
        voters, kraft_version = quorum.voters_at(end)

        def write() -> int:
            content = encode_snapshot(
                snapshot_records(image), snapshot.epoch, timestamp_ms, voters=voters, kraft_version=kraft_version
            )
            storage.write_snapshot(snapshot, content)
            storage.sync_names()
            return len(content)

        try:
            size = await self._workers.run(write)
            if storage.is_replaced(end):
                return
            storage.snapshots[snapshot] = size
            self.snapshot_at = self._clock.monotonic()
            quorum.snapshot_taken(snapshot, size)
            # Only the last segment can end with a torn batch: none may be under way when another one is begun.
            await quorum.between_writes(partial(self._begin_behind, snapshot))
            while quorum.failure is None and not storage.is_replaced(end):
                if not storage.has_needless_segments(end):
                    storage.remove_older_snapshots()
                    break
                await self._workers.run(storage.sync_names)
                if not storage.is_replaced(end):
                    storage.delete_segment(end)
        except OSError as error:
            if not may_pass(error) and not (isinstance(error, FileNotFoundError) and storage.is_replaced(end)):
                quorum.fail(error)
            # Otherwise all is as it was, and the next occasion tries again.
        finally:
            self._snapshotting = None
            quorum.write_soon()  # a snapshot that was fetched may be waiting

    def _begin_behind(self, snapshot: SnapshotId) -> None:
        """Begin the log behind a snapshot of this node's own, unless it begins behind a fetched one by now."""
        if self.storage.log.log_start_offset <= snapshot.end_offset:
            self.storage.begin_behind(snapshot)
            self.quorum.shortened(snapshot.end_offset)
