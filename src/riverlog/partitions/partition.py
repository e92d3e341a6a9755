"""One partition that this node leads: its log, its high watermark, and those who wait for either.

When `gather` returns, a batch has its offset; it is written at the end of the turn, with all others of that turn.
When `append` returns, it stands in the log. It is *committed* once the high watermark has passed it: when it is
written with `durability=os`, after the flush with `durability=fsync`. Consumers see nothing above the high watermark,
and it never goes back. Those who want committed records alone see nothing above the last stable offset, below which
every transaction is decided and its marker committed.

When another node leads, this one stops to serve at once: who waits is refused, and the log stays as it is. It serves
again when it leads again.
"""

import math
from collections.abc import Callable
from typing import Final

from riverlog.log.log import Log
from riverlog.log.segments.gathered_write import AppendResult
from riverlog.model.errors import ErrorCode, InvariantBroken, Refusal
from riverlog.model.ids import LeaderEpoch, Offset, TopicId, TopicPartition
from riverlog.model.internal_topics import COORDINATOR_TOPICS
from riverlog.model.settings import Durability, TopicConfig
from riverlog.model.transactions import ProducerIdentity, TransactionVersion
from riverlog.partitions.cold_reads import ColdReads
from riverlog.partitions.directory_health import DirectoryHealth, WithdrawnHealth
from riverlog.partitions.flusher import Flusher
from riverlog.partitions.replica import Replica, gone
from riverlog.partitions.turn import Turn
from riverlog.partitions.waiters import AppendWaiters
from riverlog.records.batch import TRANSACTIONAL, BatchHeader, check_produced, read_header
from riverlog.records.control import Marker, build_marker, read_marker
from riverlog.records.validation import check_records
from riverlog.records.walk import check_keys

_OS: Final = Durability.OS  # one look-up for all requests: in an enumeration it takes as long as a call


class Partition(Replica):
    """A led partition. All methods run on the node's loop; between two of them nothing else runs."""

    __slots__ = (
        "_commits_at_turn_end", "_gathering", "_is_for_coordinators", "_readers", "_turn", "_waiters",
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
        turn: Turn,
    ) -> None:
        super().__init__(name, topic_id, log, leader_epoch, health=health, flusher=flusher, cold_reads=cold_reads)
        self._turn = turn
        self._gathering = False  # the end of this turn has something to write
        self._commits_at_turn_end = False  # and that decides about it
        self._waiters = AppendWaiters()
        self._readers: dict[Callable[[], None], None] = {}  # those who wait for more, in order of arrival
        self._is_for_coordinators = name.topic in COORDINATOR_TOPICS  # whatever its settings are

    def append(self, batch: memoryview, *, now_ms: int) -> AppendResult:
        """Check and append one batch as a client sent it; Refusal says why not."""
        return self._written(self.gather(batch, now_ms=now_ms))

    def append_own(self, batch: memoryview, header: BatchHeader, *, now_ms: int) -> AppendResult:
        """Append one batch that needs no more checks; Refusal where the disk or a producer's epoch is in the way."""
        marker = read_marker(batch) if header.is_control else None
        return self._written(self._gather(batch, header, now_ms=now_ms, marker=marker, at_once=True))

    def gather(self, batch: memoryview, *, now_ms: int) -> AppendResult:
        """Check one batch as a client sent it and assign its offset; Refusal says why not.

        It is written when the turn ends; until then its bytes must stay as they are. Who wants to know what becomes of
        it asks `when_written` or `when_committed` at once. The first batch of a transaction must have been verified.
        """
        config = self.log.config
        header = check_produced(batch, batch_bytes_max=config.max_message_bytes)
        if self._is_for_coordinators:
            raise Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"only the cluster itself writes to {self.name.topic}")
        if header.attributes & TRANSACTIONAL and self.begins_transaction(header):
            is_known = self.log.producers.get(header.producer_id) is not None
            self.verifications.check(header, is_known=is_known)
        if config.record_validation_full:
            header = check_records(batch, header, config, now_ms=now_ms)
        if config.cleanup_compact:
            check_keys(batch, header, batch_bytes_max=config.max_message_bytes)
        return self._gather(batch, header, now_ms=now_ms)

    def begins_transaction(self, header: BatchHeader) -> bool:
        """Return whether a producer's batch would be the first of its transaction here, and no retry of one."""
        producer = self.log.producers.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            return True
        return producer.transaction_offset < 0 and producer.find(header) is None

    def check_marker(self, producer: ProducerIdentity, marker: Marker, version: TransactionVersion) -> bool:
        """Return whether a transaction's marker is still to be written; Refusal where it may not be."""
        self.check_here()
        return self.log.producers.check_marker(producer, marker, version)

    def append_marker(
        self, producer: ProducerIdentity, marker: Marker, version: TransactionVersion, *, now_ms: int
    ) -> Offset:
        """End a producer's transaction here; return the offset that must be committed for it. Refusal says why not."""
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
    ) -> AppendResult:
        """Assign one batch its offset; `at_once` says that the caller writes it before anything else happens."""
        if not self.is_led:
            self.check_here()
        health = self._health
        health.slack_bytes -= len(batch)
        if health.slack_bytes < 0:
            health.look()
        if not health.writable:
            self.log.producers.await_first(header)
            health.check_writable()
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

    def _written(self, appended: AppendResult) -> AppendResult:
        """Write at once; Refusal where what was just appended is lost."""
        lost = self.write()
        if lost is not None and appended.last_offset >= self.log.log_end_offset:
            raise lost
        return appended

    def write(self) -> Refusal | None:
        """Write what was gathered, and answer those who wait for it; return the reason where it was lost instead."""
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
        if self._waiters.for_write:
            self._waiters.written()
        self._commit_written()
        return None

    def _commit_written(self) -> None:
        """Commit all that stands in the log, or have it flushed."""
        log, config = self.log, self.log.config
        unflushed = log.log_end_offset - log.flushed_offset
        if config.durability is not _OS or unflushed >= config.flush_messages:
            self._flusher.flush(self)
        elif not log.sync_planner.first_name_synced and 2 * log.segments.active.size > config.segment_bytes:
            self._flusher.sync_first_name(self)
        if _commits_by_writing(config):
            self._advance(log.log_end_offset)

    def when_written(self, last_offset: Offset, done: Callable[[ErrorCode], None]) -> None:
        """Call `done` once: when this offset stands in the log, or is lost."""
        if last_offset < self.log.log_end_offset:
            done(ErrorCode.NONE)
        elif not self.is_led:
            done(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        else:
            self._waiters.for_write.append((last_offset, math.inf, done))

    def when_committed(
        self, last_offset: Offset, done: Callable[[ErrorCode], None], *, seconds_max: float | None
    ) -> None:
        """Call `done` once: when this offset is committed, when it never will be here, or when the time is up, if it
        ever is."""
        if last_offset < self.high_watermark:
            done(ErrorCode.NONE)
        elif not self.is_led:
            done(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        else:
            if self._gathering and self._commits_at_turn_end:  # soon: no time of it runs out
                self._waiters.for_commit.append((last_offset, math.inf, done))
            else:
                self._waiters.add(last_offset, done, seconds_max)

    def watch(self, look: Callable[[], None]) -> None:
        """Call `look` at the end of each turn after which there may be more to read, until it is taken back."""
        self._readers[look] = None

    def unwatch(self, look: Callable[[], None]) -> None:
        """Stop to call it; it may be called once more at the end of this turn."""
        self._readers.pop(look, None)

    def wake(self) -> None:
        """Wake everybody who waits to read."""
        for look in self._readers:
            self._turn.look(look)

    def flushed(self) -> None:
        """Note that the log's flushed offset has grown."""
        if not self.is_led:
            return
        self._advance(max(self.high_watermark, self.log.flushed_offset))

    def lead(self, epoch: LeaderEpoch) -> None:
        """Serve from now on, in this epoch; what the log holds is committed as if it were appended now."""
        assert not self.removed
        assert epoch >= self.leader_epoch, f"{self.name} is at leader epoch {self.leader_epoch}, not {epoch}"
        self.leader_epoch = epoch
        if self.is_led:
            return
        self.is_led = True
        self._advance(max(self.high_watermark, self.log.flushed_offset))
        self._commit_written()

    def resign(self, epoch: LeaderEpoch) -> None:
        """Serve nobody from now on, first refuse those who wait: in this epoch another node leads, or nobody."""
        assert epoch >= self.leader_epoch, f"{self.name} is at leader epoch {self.leader_epoch}, not {epoch}"
        self.write()  # what was taken is the log's, whoever leads
        self.leader_epoch = epoch
        self._stop_serving()
        self.verifications.end_all()  # another leader writes the markers that would end them

    def remove(self) -> None:
        """Refuse all requests from now on, first those that wait: this partition is no longer here."""
        self.write()  # while there still is a file
        self.removed = True
        self._health = WithdrawnHealth(gone(self.name))
        self._stop_serving()

    def _stop_serving(self) -> None:
        self.is_led = False
        self._waiters.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self.wake()

    def withdraw(self, error: OSError) -> None:
        super().withdraw(error)
        self.storage_failed()

    def storage_failed(self) -> None:
        """Fail all who wait: what they wrote will not become durable."""
        self._waiters.fail(ErrorCode.KAFKA_STORAGE_ERROR)
        self.wake()

    def _advance(self, high_watermark: Offset) -> None:
        assert high_watermark >= self.high_watermark
        assert high_watermark <= self.log.log_end_offset
        if high_watermark == self.high_watermark:
            return
        log = self.log
        assert high_watermark <= log.flushed_offset or log.config.durability is Durability.OS, "committed unflushed"
        self.high_watermark = high_watermark
        log.producers.transactions.committed(high_watermark)
        if self._waiters.for_commit:
            self._waiters.committed(high_watermark)
        self.wake()

    def _lost(self, error: OSError) -> Refusal:
        """Fail all whose gathered batches could not be written; return the refusal for whoever met the error."""
        self._gathering = False
        refusal = self._health.failed(error)
        end = self.log.log_end_offset
        self._waiters.lost(end, refusal.code)
        if end > self.high_watermark and not self._health.offline:  # others of this turn were written before
            self._commit_written()
        return refusal


def _commits_by_writing(config: TopicConfig) -> bool:
    return config.durability is _OS and config.flush_messages > 1
