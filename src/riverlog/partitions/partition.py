"""One partition that this node leads: its log, its high watermark, and everybody who waits for either.

When `gather` returns, a batch has its offset; it is written at the end of the turn, with all others of that turn.
When `append` returns, it stands in the log. It is *committed* once the high watermark has passed it: when it is
written with `durability=os`, after the flush with `durability=fsync`. Consumers see nothing above the high watermark,
and it never goes back. Those who want committed records alone see nothing above the last stable offset, below which
every transaction is decided and its marker committed.
"""

import asyncio
import math
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, TypeVar

from riverlog.log.epochs import EpochEnd
from riverlog.log.log import Log
from riverlog.log.producers.aborted_transactions import Aborted
from riverlog.log.reading import LogRead
from riverlog.log.retention import DeletedSegment
from riverlog.log.segments.gathered_write import Appended
from riverlog.log.segments.open_files import NotCached
from riverlog.log.segments.quarantine import Quarantined
from riverlog.log.times import FoundTime
from riverlog.metadata.image import COORDINATOR_TOPICS
from riverlog.model.errors import ErrorCode, InvariantBroken, Refusal
from riverlog.model.ids import LeaderEpoch, Offset, TopicId, TopicPartition
from riverlog.model.limits import SENDFILE_BYTES_MIN
from riverlog.model.ports import FileRange
from riverlog.model.settings import Durability, TopicConfig
from riverlog.model.transactions import Producer, TransactionVersion
from riverlog.observe.containment import contained
from riverlog.observe.stats import PartitionStats
from riverlog.partitions.cold_reads import ColdReads
from riverlog.partitions.directory_health import DirectoryHealth, Withdrawn
from riverlog.partitions.flusher import Flusher
from riverlog.partitions.not_yet import NotYet
from riverlog.partitions.turn import Turn
from riverlog.records.batch import TRANSACTIONAL, BatchHeader, check_produced, read_header
from riverlog.records.control import Marker, build_marker, read_marker
from riverlog.records.validation import check_records
from riverlog.records.walk import check_keys
from riverlog.transactions.verification import Verifications

T = TypeVar("T")

_KEPT: Final = ErrorCode.NONE  # one look-up for all requests: in an enumeration it takes as long as a call

Waiter = tuple[Offset, float, Callable[[ErrorCode], None]]
"""The last offset that somebody wrote, until when they wait for it, and whom to tell. A bare tuple: there is one for
every request."""


class Partition:
    """A led partition. All methods run on the node's loop; between two of them nothing else runs."""

    __slots__ = (
        "_cold_reads", "_commit_waiters", "_commits_at_turn_end", "_data_waiters", "_flusher", "_gathering",
        "_is_for_coordinators", "_patience", "_patience_ends", "_turn", "_unflushed_since_ms", "_volume",
        "_write_waiters", "high_watermark", "leader_epoch", "log", "name", "removed", "stats", "topic_id",
        "verifications",
    )  # fmt: skip

    def __init__(
        self,
        name: TopicPartition,
        topic_id: TopicId,
        log: Log,
        leader_epoch: LeaderEpoch,
        *,
        volume: DirectoryHealth,
        flusher: Flusher,
        cold_reads: ColdReads,
        turn: Turn,
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
        self.removed = False
        """The topic was deleted. Whoever still has this partition is refused: its files may be another one's by now."""
        self._volume: DirectoryHealth | Withdrawn = volume
        self._flusher = flusher
        self._cold_reads = cold_reads
        self._turn = turn
        self._gathering = False  # the end of this turn has something to write
        self._commits_at_turn_end = False  # and that decides about it
        self._write_waiters: list[Waiter] = []  # in offset order
        self._commit_waiters: deque[Waiter] = deque()  # in offset order
        self._patience: asyncio.Handle | None = None  # one for all of them
        self._patience_ends = 0.0  # uvloop's handle does not tell where it calls at once
        self._data_waiters: dict[Callable[[], None], None] = {}  # in order of arrival
        self._is_for_coordinators = name.topic in COORDINATOR_TOPICS  # whatever its settings are
        self._unflushed_since_ms: int | None = None  # as far as flush_if_due has noticed

    @property
    def last_stable_offset(self) -> Offset:
        """Give the offset below which every transaction is decided."""
        return self.log.last_stable_offset(self.high_watermark)

    def append(self, batch: memoryview, *, now_ms: int) -> Appended:
        """Check and append one batch as a client sent it; Refusal says why not."""
        return self._written(self.gather(batch, now_ms=now_ms))

    def append_own(self, batch: memoryview, header: BatchHeader, *, now_ms: int) -> Appended:
        """Append one batch that needs no more checks; Refusal where the disk or a producer's epoch is in the way."""
        marker = read_marker(batch) if header.is_control else None
        return self._written(self._gather(batch, header, now_ms=now_ms, marker=marker, at_once=True))

    def gather(self, batch: memoryview, *, now_ms: int) -> Appended:
        """Check one batch as a client sent it and give it its offset; Refusal says why not.

        It is written when the turn ends; until then its bytes must stay as they are. Who wants to know what becomes of
        it asks `when_written` or `when_committed` at once. The first batch of a transaction must have been verified.
        """
        config = self.log.config
        header = check_produced(batch, batch_bytes_max=config.max_message_bytes)
        if self._is_for_coordinators:
            raise Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"only the cluster itself writes to {self.name.topic}")
        if config.record_validation_full:
            header = check_records(batch, header, config, now_ms=now_ms)
        if config.cleanup_compact:
            check_keys(batch, header, batch_bytes_max=config.max_message_bytes)
        if header.attributes & TRANSACTIONAL and self.begins_transaction(header):
            is_known = self.log.producers.get(header.producer_id) is not None
            self.verifications.check(header, is_known=is_known)
        return self._gather(batch, header, now_ms=now_ms)

    def begins_transaction(self, header: BatchHeader) -> bool:
        """Tell whether a producer's batch would be the first of its transaction here, and no retry of one."""
        producer = self.log.producers.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            return True
        return producer.transaction_offset < 0 and producer.find(header) is None

    def check_marker(self, producer: Producer, marker: Marker, version: TransactionVersion) -> bool:
        """Tell whether a transaction's marker is still to be written; Refusal where it may not be."""
        self.check_here()
        return self.log.producers.check_marker(producer, marker, version)

    def append_marker(self, producer: Producer, marker: Marker, version: TransactionVersion, *, now_ms: int) -> Offset:
        """End a producer's transaction here; give the offset that has to be committed for it. Refusal says why not."""
        if not self.check_marker(producer, marker, version):
            self.write()
            return Offset(self.log.log_end_offset - 1)
        batch = memoryview(build_marker(marker, producer.id, producer.epoch, timestamp_ms=now_ms))
        ended = self._gather(batch, read_header(batch), now_ms=now_ms, marker=marker, at_once=True)
        return self._written(ended).last_offset

    def _gather(
        self,
        batch: memoryview,
        header: BatchHeader,
        *,
        now_ms: int,
        marker: Marker | None = None,
        at_once: bool = False,
    ) -> Appended:
        """Give one batch its offset; `at_once` says that the caller writes it before anything else happens."""
        volume = self._volume
        volume.slack_bytes -= len(batch)
        if volume.slack_bytes < 0:
            volume.look()
        if not volume.writable:
            self.log.producers.await_first(header)
            volume.check_writable()
        try:
            appended = self.log.gather(batch, header, leader_epoch=self.leader_epoch, now_ms=now_ms, marker=marker)
        except OSError as error:
            self.log.producers.await_first(header)
            raise self._lost(error) from error
        except Refusal:
            raise
        except Exception as mistake:
            raise InvariantBroken(f"{self.name} could not take a batch: {mistake!r}") from mistake
        if appended.duplicate:
            return appended
        if header.attributes & TRANSACTIONAL:
            self.verifications.end(header.producer_id)
        if not self._gathering:
            self._gathering = True
            self._commits_at_turn_end = _commits_by_writing(self.log.config)
            if not at_once:
                self._turn.write(self.write)
        stats = self.stats
        stats.batches_in += 1
        stats.messages_in += header.record_count
        stats.bytes_in += len(batch)
        return appended

    def _written(self, appended: Appended) -> Appended:
        """Write at once; Refusal where what was just appended is lost."""
        lost = self.write()
        if lost is not None and appended.last_offset >= self.log.log_end_offset:
            raise lost
        return appended

    def write(self) -> Refusal | None:
        """Write what was gathered, and tell those who wait for it; give the reason where it was lost instead."""
        if not self._gathering:
            return None
        self._gathering = False
        log = self.log
        try:
            log.write()
        except OSError as error:
            return self._lost(error)
        except Exception as mistake:
            raise InvariantBroken(f"{self.name} could not be written: {mistake!r}") from mistake
        if self._write_waiters:
            waiters, self._write_waiters = self._write_waiters, []
            _tell(waiters, _KEPT)
        self._commit_written()
        return None

    def _commit_written(self) -> None:
        """Commit all that stands in the log, or have it flushed."""
        log, config = self.log, self.log.config
        unflushed = log.log_end_offset - log.flushed_offset
        if config.durability is not Durability.OS or unflushed >= config.flush_messages or log.wants_flush:
            self._flusher.flush(self)
        if _commits_by_writing(config):
            self._advance(log.log_end_offset)

    def when_written(self, last_offset: Offset, done: Callable[[ErrorCode], None]) -> None:
        """Call `done` once: when this offset stands in the log, or is lost."""
        if last_offset < self.log.log_end_offset:
            done(ErrorCode.NONE)
        elif self.removed:
            done(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        else:
            self._write_waiters.append((last_offset, math.inf, done))

    def when_committed(
        self, last_offset: Offset, done: Callable[[ErrorCode], None], *, seconds_max: float | None
    ) -> None:
        """Call `done` once: when this offset is committed, when it never will be here, or when the time is up, if it
        ever is."""
        if last_offset < self.high_watermark:
            done(ErrorCode.NONE)
        elif self.removed:
            done(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif (self._gathering and self._commits_at_turn_end) or seconds_max is None:
            self._commit_waiters.append((last_offset, math.inf, done))
        else:
            loop = asyncio.get_running_loop()
            deadline = loop.time() + seconds_max
            self._commit_waiters.append((last_offset, deadline, done))
            if self._patience is None or deadline < self._patience_ends:
                self._wait_until(deadline, loop)

    def watch(self, look: Callable[[], None]) -> None:
        """Call `look` at the end of each turn after which there may be more to read, until it is taken back."""
        self._data_waiters[look] = None

    def unwatch(self, look: Callable[[], None]) -> None:
        """Call it no more, except that it may be called at the end of this turn."""
        self._data_waiters.pop(look, None)

    def wake(self) -> None:
        """Let everybody who waits to read look again."""
        for look in self._data_waiters:
            self._turn.look(look)

    def read(self, offset: Offset, *, bytes_max: int, upto: Offset, at_least_one: bool) -> LogRead:
        """Find committed bytes from `offset` on; Refusal where that offset is not in the log, NotYet where they must be
        read from the disk first."""
        if offset > self.high_watermark:  # always so when it was removed
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
            raise self._volume.failed(error) from error
        finally:
            files.cached_only = False
        return self._read_at_once(partial(log.read, offset, bytes_max=bytes_max, upto=upto, at_least_one=at_least_one))

    def aborted_in(self, found: LogRead, offset: Offset) -> list[Aborted]:
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
        if (found.size >= SENDFILE_BYTES_MIN or found.size > copied_max) and not self.log.segments.crowded:
            return found
        try:
            content = found.file.read_cached(found.position, found.size)
        except OSError as error:
            raise self._volume.failed(error) from error
        if content is not None:
            return content
        self._read_beside(found)
        return self._read_at_once(partial(found.file.read, found.position, found.size))

    def replay(self, offset: Offset, *, bytes_max: int) -> bytes:
        """Read committed batches from an offset on, waiting for the disk: for coordinators that learn again."""
        try:
            found = self.log.read(offset, bytes_max=bytes_max, upto=self.high_watermark).records
            return b"" if found is None else found.file.read(found.position, found.size)
        except OSError as error:
            raise self._volume.failed(error) from error

    async def load_segments(self) -> None:
        """Learn about all segments; after that nobody who asks for them waits for the disk."""
        while self.keeps_files and not self.log.segments.all_known:
            try:
                self._cached(self.log.segment_facts)
            except NotYet as not_yet:
                await asyncio.shield(not_yet.until)

    def _cached(self, read: Callable[[], T]) -> T:
        """Read what is in memory; NotYet where the disk must be waited for, Refusal where it is in the way."""
        files = self.log.segments.files
        files.cached_only = True
        try:
            return read()
        except NotCached as cold:
            self._read_beside(cold.missing)
        except OSError as error:
            raise self._volume.failed(error) from error
        finally:
            files.cached_only = False
        return self._read_at_once(read)

    def _read_beside(self, missing: FileRange) -> None:
        """Have bytes read beside the loop, and raise NotYet; return where that was just tried, and did not help."""
        until = self._cold_reads.begin(missing)
        if until is not None:
            raise NotYet(until) from None

    def _read_at_once(self, read: Callable[[], T]) -> T:
        """Read, however long the disk takes: the system does not keep in memory what is read beside the loop."""
        try:
            return read()
        except OSError as error:
            raise self._volume.failed(error) from error

    def end_of_epoch(self, epoch: LeaderEpoch) -> EpochEnd:
        """Say where an epoch ended; the one that still goes on ends with the log, even if nothing was written in it."""
        self.check_here()
        if epoch == self.leader_epoch:
            return EpochEnd(epoch, self.log.log_end_offset)
        return self.log.end_of_epoch(epoch)

    def check_here(self) -> None:
        """Refuse whoever comes when the topic was deleted."""
        if self.removed:
            raise _gone(self.name)

    def check_epoch(self, epoch: int) -> None:
        """Refuse a client whose idea of the leader epoch is not ours; -1 means that it has none."""
        if epoch < 0 or epoch == self.leader_epoch:
            return
        if epoch < self.leader_epoch:
            raise Refusal(
                ErrorCode.FENCED_LEADER_EPOCH, f"{self.name} is at leader epoch {self.leader_epoch}, not {epoch}"
            )
        raise Refusal(
            ErrorCode.UNKNOWN_LEADER_EPOCH, f"{self.name} is at leader epoch {self.leader_epoch}, not yet {epoch}"
        )

    def delete_records(self, before: Offset) -> Offset:
        """Delete the records below an offset, -1 meaning all that are committed; return the new start of the log.

        A full disk does not refuse it: this is how room is made.
        """
        self._volume.check_online()
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
            self.log.remove_deleted(uptime_ms)
        except OSError as error:
            raise self._volume.failed(error) from error

    async def retain(self, *, now_ms: int, producers_older_than_ms: int) -> list[DeletedSegment]:
        """Drop segments and silent producers whose time has come.

        Before a segment goes, all is on the medium that the next one begins with: a crash never leaves a gap, nor a log
        without any segment, nor forgets a producer.
        """
        log, deleted = self.log, list[DeletedSegment]()
        await self.load_segments()
        try:
            if not self._volume.offline:
                log.producers.expire(producers_older_than_ms)
                self.verifications.expire(producers_older_than_ms)
            while self.keeps_files and log.find_expired(now_ms, upto=self.high_watermark):
                self._flusher.flush(self)
                await self._flusher.settled(self)
                if self.keeps_files:
                    deleted += log.enforce_retention(now_ms, upto=self.high_watermark, segments_max=1)
        except OSError as error:
            raise self._volume.failed(error) from error
        return deleted

    @property
    def keeps_files(self) -> bool:
        """Tell whether this partition's files are here and can be changed; a deleted one's name may be another's."""
        return not self._volume.offline

    def check_files(self, error: OSError) -> Refusal:
        """Judge an error that somebody met with this partition's files and give the refusal for it."""
        return self._volume.failed(error)

    def found_damage(self) -> list[Quarantined]:
        """Give the damage that nobody was told about yet, and see that it is remembered durably."""
        quarantine = self.log.quarantine
        if quarantine.unsaved and not self._volume.offline:
            self._flusher.flush(self)
        untold, quarantine.untold = quarantine.untold, []
        return [known for known in untold if known.flaw.next_offset > self.log.log_start_offset]

    def flush_if_due(self, *, uptime_ms: int) -> None:
        """Flush what has waited for longer than `flush.ms`."""
        log = self.log
        if log.flushed_offset == log.log_end_offset or self._volume.offline:
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
        """Take note that the log's flushed offset has grown."""
        if self.removed:
            return
        self._advance(max(self.high_watermark, self.log.flushed_offset))

    def remove(self) -> None:
        """Refuse everybody from now on, first those who wait: this partition is no longer here."""
        self.write()  # while there still is a file
        self.removed = True
        self._volume = Withdrawn(_gone(self.name))
        self.high_watermark = Offset(-1)  # nothing is left to read
        self._fail_waiters(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def withdraw(self, error: OSError) -> None:
        """Take no more writes: what this partition is made of is gone from under it, and from it alone."""
        message = f"{self.name} takes no writes: {error}; stop the node, put the files back and start it again"
        self._volume = Withdrawn(Refusal(ErrorCode.KAFKA_STORAGE_ERROR, message))
        self._fail_waiters(ErrorCode.KAFKA_STORAGE_ERROR)

    def storage_failed(self) -> None:
        """Tell all who wait that what they wrote will not become durable."""
        self._fail_waiters(ErrorCode.KAFKA_STORAGE_ERROR)

    def _advance(self, high_watermark: Offset) -> None:
        assert high_watermark >= self.high_watermark
        assert high_watermark <= self.log.log_end_offset
        if high_watermark == self.high_watermark:
            return
        self.high_watermark = high_watermark
        self.log.producers.transactions.committed(high_watermark)
        waiters = self._commit_waiters
        while waiters and waiters[0][0] < high_watermark:
            try:
                waiters.popleft()[2](_KEPT)
            except Exception as error:
                contained("answer for a committed batch", error)
        self.wake()

    def _lost(self, error: OSError) -> Refusal:
        """Tell all whose batches were gathered and could not be written; give the refusal for whoever met the error."""
        self._gathering = False
        refusal = self._volume.failed(error)
        end = self.log.log_end_offset
        waiting = [*self._write_waiters, *self._commit_waiters]
        # Offsets of what was lost are given to others: nobody may go on waiting for them.
        self._commit_waiters = deque(waiter for waiter in self._commit_waiters if waiter[0] < end)
        written, self._write_waiters = self._write_waiters, []
        _tell((waiter for waiter in waiting if waiter[0] >= end), refusal.code)
        _tell((waiter for waiter in written if waiter[0] < end), ErrorCode.NONE)
        if end > self.high_watermark and not self._volume.offline:  # others of this turn were written before
            self._commit_written()
        return refusal

    def _fail_waiters(self, code: ErrorCode) -> None:
        waiting, self._commit_waiters = self._commit_waiters, deque()
        _tell(waiting, code)
        self.wake()

    def _wait_until(self, deadline: float, loop: asyncio.AbstractEventLoop) -> None:
        if self._patience is not None:
            self._patience.cancel()
        self._patience, self._patience_ends = loop.call_at(deadline, self._lose_patience), deadline

    def _lose_patience(self) -> None:
        """Tell those whose time is up, and look again when the next one's will be."""
        self._patience = None
        loop = asyncio.get_running_loop()
        waiting, self._commit_waiters = self._commit_waiters, deque()
        late: list[Waiter] = []
        for waiter in waiting:
            (late if waiter[1] <= loop.time() else self._commit_waiters).append(waiter)
        _tell(late, ErrorCode.REQUEST_TIMED_OUT)
        deadline = min((deadline for _, deadline, _ in self._commit_waiters), default=math.inf)
        if deadline < math.inf:
            self._wait_until(deadline, loop)


def _gone(name: TopicPartition) -> Refusal:
    return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{name} was deleted")


def _tell(waiters: Iterable[Waiter], code: ErrorCode) -> None:
    """Answer each with what became of its batch; an exception of one is no reason to leave those behind it waiting."""
    for _, _, done in waiters:
        try:
            done(code)
        except Exception as error:
            contained("answer for a batch", error)


def _commits_by_writing(config: TopicConfig) -> bool:
    return config.durability is Durability.OS and config.flush_messages > 1
