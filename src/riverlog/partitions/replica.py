"""One replica of a partition: its log in a directory of this node, as readers and upkeep see it.

Readers see what lies below the high watermark, and those who want committed records alone what lies below the last
stable offset. What is not in memory is read beside the loop: whoever asks for it gets `RetryLater` and comes again.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from riverlog.log.log import Log
from riverlog.log.producers.aborted_transactions import AbortedRange
from riverlog.log.reading import LogRead
from riverlog.log.retention import DeletedSegment
from riverlog.log.segment_deletion import enforce_retention, find_expired
from riverlog.log.segments.open_files import NotCached
from riverlog.log.segments.quarantine import Quarantined
from riverlog.log.times import FoundTime
from riverlog.model.epochs import EpochEnd
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import LeaderEpoch, Offset, TopicId, TopicPartition
from riverlog.model.limits import SENDFILE_BYTES_MIN
from riverlog.model.ports import FileRange
from riverlog.observe.stats import PartitionStats
from riverlog.partitions.cold_reads import ColdReads
from riverlog.partitions.directory_health import DirectoryHealth, WithdrawnHealth
from riverlog.partitions.flusher import Flusher
from riverlog.partitions.retry_later import RetryLater
from riverlog.transactions.verification import Verifications

T = TypeVar("T")


class Replica:
    """A log, how far it is committed, and whether it is still here. All methods run on the node's loop."""

    __slots__ = (
        "_cold_reads", "_flusher", "_health", "_unflushed_since_ms", "high_watermark", "is_led", "leader_epoch", "log",
        "name", "removed", "stats", "topic_id", "verifications",
    )  # fmt: skip

    def __init__(
        self,
        name: TopicPartition,
        topic_id: TopicId,
        log: Log,
        leader_epoch: LeaderEpoch,
        *,
        health: DirectoryHealth,
        flusher: Flusher,
        cold_reads: ColdReads,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.log = log
        self.leader_epoch = leader_epoch
        self.stats = PartitionStats()
        self.high_watermark = log.log_end_offset  # a node alone: all that recovery kept is committed
        log.producers.transactions.committed(self.high_watermark)
        self.verifications = Verifications()
        """The transactions that are about to begin here."""
        self.is_led = True
        """This node leads the partition. While another one does, or nobody, nobody is served here."""
        self.removed = False
        """The topic was deleted. Its holders are refused: its files may belong to another one by now."""
        self._health: DirectoryHealth | WithdrawnHealth = health
        self._flusher = flusher
        self._cold_reads = cold_reads
        self._unflushed_since_ms: int | None = None  # as far as flush_if_due has noticed

    @property
    def last_stable_offset(self) -> Offset:
        """Return the offset below which every transaction is decided."""
        return self.log.last_stable_offset(self.high_watermark)

    def read(self, offset: Offset, *, bytes_max: int, upto: Offset, at_least_one: bool) -> LogRead:
        """Find committed bytes from `offset` on.

        Refusal where that offset is not in the log, RetryLater where they must be read from the disk first.
        """
        if not self.is_led or offset > self.high_watermark:
            self.check_here()
            raise Refusal(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.name} ends at offset {self.high_watermark}; {offset} was asked for",
            )
        log = self.log
        files = log.segments.files
        files.cached_only = True  # as `_cached` does, without a call: this is done for every fetch
        try:
            return log.read(offset, bytes_max=bytes_max, upto=upto, at_least_one=at_least_one)
        except NotCached as cold:
            self._read_beside(cold.missing)
        except OSError as error:
            raise self._health.failed(error) from error
        finally:
            files.cached_only = False
        return self._read_at_once(partial(log.read, offset, bytes_max=bytes_max, upto=upto, at_least_one=at_least_one))

    def aborted_in(self, found: LogRead, offset: Offset) -> list[AbortedRange]:
        """Name the aborted transactions with records in what was read from an offset on, the earliest first."""
        return self._cached(partial(self.log.aborted_in, found, offset))

    def offset_for_time(self, timestamp_ms: int) -> FoundTime | None:
        """Find the first record that is as late as this or later; raises what `read` does."""
        self.check_here()
        return self._cached(partial(self.log.offset_for_time, timestamp_ms))

    def max_timestamp(self) -> FoundTime | None:
        """Find the first record with the latest timestamp of all; raises what `read` does."""
        self.check_here()
        return self._cached(self.log.max_timestamp)

    def content(self, found: FileRange, copied_max: int = SENDFILE_BYTES_MIN) -> bytes | FileRange:
        """Read a small range now, which is cheaper than sending it from the file; leave a large one where it lies,
        unless its file must not stay open for as long as a slow reader takes."""
        if (found.size >= SENDFILE_BYTES_MIN or found.size > copied_max) and not self.log.segments.files.crowded:
            return found
        try:
            content = found.file.read_cached(found.position, found.size)
        except OSError as error:
            raise self._health.failed(error) from error
        if content is not None:
            return content
        self._read_beside(found)
        return self._read_at_once(partial(found.file.read, found.position, found.size))

    def replay(self, offset: Offset, *, bytes_max: int) -> bytes:
        """Read committed batches from an offset on, waiting for the disk: for coordinators that load their state."""
        try:
            found = self.log.read(offset, bytes_max=bytes_max, upto=self.high_watermark).records
            return b"" if found is None else found.file.read(found.position, found.size)
        except OSError as error:
            raise self._health.failed(error) from error

    async def load_segments(self) -> None:
        """Load all segments, so that nobody who asks for them waits for the disk."""
        while self.keeps_files and not self.log.segments.all_known:
            try:
                self._cached(self.log.segment_facts)
            except RetryLater as retry:
                await asyncio.shield(retry.until)

    def _cached(self, read: Callable[[], T]) -> T:
        """Read what is in memory; RetryLater where the disk must be waited for, Refusal where it is in the way."""
        files = self.log.segments.files
        files.cached_only = True
        try:
            return read()
        except NotCached as cold:
            self._read_beside(cold.missing)
        except OSError as error:
            raise self._health.failed(error) from error
        finally:
            files.cached_only = False
        return self._read_at_once(read)

    def _read_beside(self, missing: FileRange) -> None:
        """Begin to read bytes beside the loop, and raise RetryLater; return where that was just tried in vain."""
        until = self._cold_reads.begin(missing)
        if until is not None:
            raise RetryLater(until) from None

    def _read_at_once(self, read: Callable[[], T]) -> T:
        """Read, however long the disk takes: the system does not keep in memory what is read beside the loop."""
        try:
            return read()
        except OSError as error:
            raise self._health.failed(error) from error

    def end_of_epoch(self, epoch: LeaderEpoch) -> EpochEnd:
        """Find the end of an epoch; the one that still goes on ends with the log, even if nothing was written in it."""
        self.check_here()
        if epoch == self.leader_epoch:
            return EpochEnd(epoch, self.log.log_end_offset)
        return self.log.epochs.end_of(epoch, self.log.log_end_offset)

    def check_here(self) -> None:
        """Refuse requests after the topic was deleted, or while this node does not lead."""
        if self.removed:
            raise gone(self.name)
        if not self.is_led:
            raise not_led(self.name)

    def check_epoch(self, epoch: int) -> None:
        """Refuse a client that knows another leader epoch than ours; -1 means that it knows none."""
        check_epoch(self.name, self.leader_epoch, epoch)

    def delete_records(self, before: Offset) -> Offset:
        """Delete the records below an offset, -1 meaning all that are committed; return the new start of the log.

        A full disk does not refuse it: this is how room is made.
        """
        self._health.check_online()
        if before < 0:
            before = self.high_watermark
        if before > self.high_watermark:
            raise Refusal(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"{self.name} ends at offset {self.high_watermark}; {before} was given"
            )
        self.log.advance_log_start(before)
        return self.log.log_start_offset

    def remove_deleted(self, *, uptime_ms: int) -> None:
        """Remove the files of segments that were deleted `file.delete.delay.ms` ago."""
        if not self.keeps_files:
            return
        try:
            self.log.segments.remove_deleted(uptime_ms)
        except OSError as error:
            raise self._health.failed(error) from error

    async def retain(self, *, now_ms: int, producers_older_than_ms: int) -> list[DeletedSegment]:
        """Drop segments and silent producers whose time has come.

        Before a segment goes, all is on the medium that the next one begins with: a crash never leaves a gap, nor a log
        without any segment, nor forgets a producer.
        """
        log, deleted = self.log, list[DeletedSegment]()
        await self.load_segments()
        try:
            if not self._health.offline:
                log.producers.expire(producers_older_than_ms)
                self.verifications.expire(producers_older_than_ms)
            while self.keeps_files and find_expired(log, now_ms, upto=self.high_watermark):
                self._flusher.flush(self)
                await self._flusher.settled(self)
                if self.keeps_files:
                    deleted += enforce_retention(log, now_ms, upto=self.high_watermark, segments_max=1)
        except OSError as error:
            raise self._health.failed(error) from error
        return deleted

    @property
    def keeps_files(self) -> bool:
        """Return whether this partition's files are here and can be changed; a deleted one's name may be another's."""
        return not self._health.offline

    def check_files(self, error: OSError) -> Refusal:
        """Judge an error of this partition's files; return the refusal for it."""
        return self._health.failed(error)

    def take_damage(self) -> list[Quarantined]:
        """Return the damage that was not reported yet, and have it written down durably."""
        quarantine = self.log.quarantine
        if quarantine.unsaved and not self._health.offline:
            self._flusher.flush(self)
        unreported, quarantine.unreported = quarantine.unreported, []
        return [known for known in unreported if known.flaw.next_offset > self.log.log_start_offset]

    def flush_if_due(self, *, uptime_ms: int) -> None:
        """Flush what has waited for longer than `flush.ms`."""
        log = self.log
        if log.flushed_offset == log.log_end_offset or self._health.offline:
            self._unflushed_since_ms = None
        elif (
            log.flushed_offset < log.segments.active.base_offset
        ):  # a closed segment is flushed, so that recovery skips it
            self._flusher.flush(self)
        elif self._unflushed_since_ms is None:
            self._unflushed_since_ms = uptime_ms
        elif uptime_ms - self._unflushed_since_ms >= log.config.flush_ms:
            self._unflushed_since_ms = None
            self._flusher.flush(self)

    def flushed(self) -> None:
        """Note that the log's flushed offset has grown."""

    def withdraw(self, error: OSError) -> None:
        """Refuse writes from now on: the files of this partition are gone, and of it alone."""
        message = f"{self.name} takes no writes: {error}; stop the node, put the files back and start it again"
        self._health = WithdrawnHealth(Refusal(ErrorCode.KAFKA_STORAGE_ERROR, message))


def gone(name: TopicPartition) -> Refusal:
    """Return the refusal for requests after a topic was deleted."""
    return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{name} was deleted")


def not_led(name: TopicPartition) -> Refusal:
    """Return the refusal for requests about a partition that another node leads, or nobody."""
    return Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{name} is not led by this broker; ask for its leader again")


def check_epoch(name: TopicPartition, leader_epoch: LeaderEpoch, epoch: int) -> None:
    """Refuse a client that knows another leader epoch than a partition has; -1 means that it knows none."""
    if epoch < 0 or epoch == leader_epoch:
        return
    if epoch < leader_epoch:
        raise Refusal(ErrorCode.FENCED_LEADER_EPOCH, f"{name} is at leader epoch {leader_epoch}, not {epoch}")
    raise Refusal(ErrorCode.UNKNOWN_LEADER_EPOCH, f"{name} is at leader epoch {leader_epoch}, not yet {epoch}")
