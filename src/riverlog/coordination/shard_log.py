"""A partition of an internal topic as the log under a machine.

What a decision writes is one batch, so that a crash leaves all of it or nothing, and it is committed as any batch of
that topic is. Only the machine writes here. Refusals are in the words that clients of coordinators know: they look
for the coordinator again, and try again. What no segment could hold is refused alone. Damage is gone round where the
machine can do without what is lost; else it is `Damaged`, until somebody restores the file.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Generic, Protocol, TypeVar

from riverlog.coordination.limits import REPLAY_READ_BYTES
from riverlog.log.segments.quarantine import Quarantined
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import Offset, TopicPartition
from riverlog.model.ports import Clock
from riverlog.observe.containment import contained
from riverlog.observe.logging import get_logger
from riverlog.partitions.partition import Partition
from riverlog.partitions.replicas import Replicas
from riverlog.records.batch import BatchHeader, headers, read_header
from riverlog.records.record import Record, check_batch, records_in, unfolded
from riverlog.runner import Unwritable

Fact = TypeVar("Fact")

_LOG: Final = get_logger("riverlog.coordinators")
_OF_THE_BATCH: Final = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)
"""Refusals that are about one batch and say nothing about the partition."""


class Batches(Protocol[Fact]):
    """How the facts of a machine become batches of its topic: a module `batches.py`."""

    def encode_facts(self, facts: Sequence[Fact], now_ms: int, bytes_max: int, /) -> bytearray: ...
    def decode_facts(self, header: BatchHeader, records: Sequence[Record], /) -> Iterable[Fact]: ...


class Damaged(Refusal):
    """Some of the facts cannot be read, and the others must not be believed without them."""


class ShardLog(Generic[Fact]):
    """Appends facts to a partition and reads them back; the partition's file is begun by the first of them.

    With `price`, which says what the loss of some facts means, damaged ones are left out; without it none may be.
    A decision of which `asked_again` says so is refused alone while the disk is full; any other one ends the machine,
    so that it begins anew with what the log says.
    """

    def __init__(
        self,
        name: TopicPartition,
        replicas: Replicas,
        clock: Clock,
        batches: Batches[Fact],
        *,
        price: str | None = None,
        asked_again: Callable[[Sequence[Fact]], bool] = lambda facts: False,
    ) -> None:
        self.closed = False
        """Another broker writes here: nothing is read or written any more."""
        self._name = name
        self._asked_again = asked_again
        self._price = price
        self._replicas = replicas
        self._clock = clock
        self._batches = batches

    @property
    def begun(self) -> bool:
        """Return whether anything was ever written here."""
        return self._replicas.has_folder(self._name)

    def append(self, records: Sequence[Fact]) -> "asyncio.Future[None] | None":
        """Write the facts as one batch; the future ends once it is committed, and None says that it is."""
        now_ms = self._clock.wall_ms()
        partition: Partition | None = None
        try:
            partition = self._partition()
            batch = memoryview(self._encoded(records, now_ms, partition.log.config.segment_bytes))
            appended = partition.append_own(batch, read_header(batch), now_ms=now_ms)
        except Unwritable:
            raise
        except Refusal as refusal:
            if refusal.code in _OF_THE_BATCH:
                raise Unwritable(refusal.code, refusal.message) from refusal
            is_for_now = refusal.code is ErrorCode.KAFKA_STORAGE_ERROR and (partition is None or partition.keeps_files)
            if is_for_now and self._asked_again(records):
                raise Unwritable(ErrorCode.COORDINATOR_NOT_AVAILABLE, refusal.message) from refusal
            raise _refusal(refusal) from refusal
        if appended.last_offset < partition.high_watermark:
            return None
        return self._committed(partition, appended.last_offset)

    def _encoded(self, records: Sequence[Fact], now_ms: int, bytes_max: int) -> bytearray:
        try:
            return self._batches.encode_facts(records, now_ms, bytes_max)
        except Refusal as too_large:
            _LOG.warning("decision not written", partition=str(self._name), cause=too_large.message)
            raise Unwritable(ErrorCode.UNKNOWN_SERVER_ERROR, too_large.message) from too_large
        except Exception as error:
            contained(f"facts for {self._name} could not be written", error)
            raise Unwritable(ErrorCode.UNKNOWN_SERVER_ERROR, "It cannot be written down.") from error

    def _committed(self, partition: Partition, last_offset: Offset) -> "asyncio.Future[None]":
        committed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def done(code: ErrorCode) -> None:
            if code is ErrorCode.NONE:
                committed.set_result(None)
            else:
                committed.set_exception(_refusal(Refusal(code, self._uncommitted(code))))

        partition.when_committed(last_offset, done, seconds_max=None)  # it ends when the partition does, if not before
        return committed

    def _uncommitted(self, code: ErrorCode) -> str:
        if code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            return f"{self._name} has another leader, which may or may not have what was written last"
        return f"{self._name} could not be written"

    def is_committed(self, then: Callable[[], None]) -> bool:
        """Return whether all that is in the partition is committed; else call `then` once that may be so."""
        if not self.begun:
            return True
        try:
            partition = self._partition()
        except Refusal as refusal:
            raise _refusal(refusal) from refusal
        last_offset = Offset(partition.log.log_end_offset - 1)
        if last_offset < partition.high_watermark:
            return True
        partition.when_committed(last_offset, lambda _code: then(), seconds_max=None)
        return False

    def close(self) -> None:
        """Read and write nothing more: another broker leads the partition."""
        self.closed = True

    def replay(self) -> Iterator[Fact]:
        """Read all facts that are there; whoever iterates may let time pass in between."""
        if not self.begun:
            return
        try:
            partition = self._partition()
            offset = partition.log.log_start_offset
            while True:
                try:
                    partition = self._partition()  # another broker's, once time has passed
                    found = partition.replay(offset, bytes_max=REPLAY_READ_BYTES)
                except Refusal:
                    flaw = None if self.closed else partition.log.quarantine.at(offset)
                    if flaw is None:
                        raise
                    self._left_out(flaw, partition.log.folder)
                    offset = flaw.flaw.next_offset
                    continue
                if not found:
                    return
                for position, header in headers(found):
                    batch = memoryview(found)[position : position + header.size]
                    yield from self._facts(check_batch(batch), batch)
                    offset = header.next_offset
        except Damaged:
            raise
        except Refusal as refusal:
            raise _refusal(refusal) from refusal

    def _left_out(self, known: Quarantined, folder: str) -> None:
        """Report facts that are lost; Damaged where none may be."""
        first, last = known.flaw.first_offset, known.flaw.next_offset - 1
        offsets = f"{self._name} is damaged at " + (f"offsets {first} to {last}" if last > first else f"offset {first}")
        if self._price is None:
            detail = (
                f"{offsets}; restore {folder} from a copy, or remove it while the node is stopped to give up all in it"
            )
            raise Damaged(ErrorCode.COORDINATOR_NOT_AVAILABLE, detail)
        _LOG.error(
            "facts of a coordinator are lost", folder=folder, damage=str(known), detail=f"{offsets}: {self._price}"
        )

    def _facts(self, header: BatchHeader, batch: memoryview) -> Iterator[Fact]:
        """Return the facts of one batch; a record that cannot be read is told and left out: all others count."""
        records: Sequence[Record] = ()
        try:
            records = records_in(unfolded(batch, header), header)
            facts = list(self._batches.decode_facts(header, records))
        except Exception as error:
            if len(records) <= 1:
                contained(f"record in {self._name} at offset {header.base_offset} left out", error)
                return
            facts = [fact for record in records for fact in self._fact(header, record)]
        yield from facts

    def _fact(self, header: BatchHeader, record: Record) -> list[Fact]:
        try:
            return list(self._batches.decode_facts(header, (record,)))
        except Exception as error:
            contained(f"record in {self._name} at offset {record.offset} left out", error)
            return []

    def _partition(self) -> Partition:
        if self.closed:
            raise Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self._name} is another broker's by now")
        partition = self._replicas.get(self._name.topic, self._name.partition)
        if partition is None:
            raise Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self._name} is not here")
        return partition


def _refusal(refusal: Refusal) -> Refusal:
    """Return the refusal by which a coordinator's clients know that its partition is in trouble."""
    return Refusal(ErrorCode.NOT_COORDINATOR, f"{refusal.message}; the coordinator is away")
