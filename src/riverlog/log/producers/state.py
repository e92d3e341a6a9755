"""What idempotent producers wrote to a partition lately, so that a retry is recognised and a gap is refused.

For each producer id: its epoch, its last five batches, and the transaction that it has open. Rules as in Kafka: an
older epoch is fenced, a new epoch begins at sequence 0, a producer never seen may begin anywhere (its past may have
been deleted), a repeated batch is answered with the offsets it has, anything else out of sequence is refused. A batch
without a sequence is a coordinator's own, and only its epoch is looked at. Where the first batch of a producer could
not be written, it is awaited: those behind it may not overtake it. Sequences run from 0 to 2^31 - 1 and start over.
Pure; the binary form is Kafka's `.snapshot` file, in which a producer's batches stand one behind the other, oldest
first (Kafka writes and keeps the last one only).
"""

from struct import Struct
from typing import Final, NamedTuple

from fastcrc.crc32 import iscsi as crc32c

from riverlog.log.producers.aborted_transactions import AbortedRange
from riverlog.log.producers.transactions import OpenTransactions
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NO_OFFSET, NO_SEQUENCE, Offset, ProducerEpoch, ProducerId
from riverlog.model.limits import PRODUCER_BATCHES_REMEMBERED, PRODUCERS_PER_PARTITION_MAX
from riverlog.model.transactions import ProducerIdentity, TransactionVersion
from riverlog.records.batch import TRANSACTIONAL, BatchHeader
from riverlog.records.control import Marker

_PREFIX: Final = Struct(">hI")
_COUNT: Final = Struct(">i")
_ENTRY: Final = Struct(">qhiqiqiq")
_BATCH: Final = Struct(">iiqqq")
_PACKED_BEFORE_MAX: Final = (PRODUCER_BATCHES_REMEMBERED - 1) * _BATCH.size
_SNAPSHOT_VERSION: Final = 1
_NO_COORDINATOR: Final = -1
_SEQUENCE_MASK: Final = 0x7FFFFFFF


class BadSnapshot(ValueError):
    """A producer snapshot is damaged; the state is rebuilt from the log instead."""


class ProducedBatch(NamedTuple):
    """A batch that a producer wrote: its sequences, where it lies, and when it was appended."""

    first_sequence: int
    last_sequence: int
    base_offset: Offset
    last_offset: Offset
    appended_ms: int


class ProducerState:
    """One producer id: the epoch it writes in, and its latest batches of that epoch, oldest first.

    There may be very many, of which each wrote once: so the batches are packed into bytes until somebody wants to know.
    """

    __slots__ = ("_packed", "coordinator_epoch", "epoch", "heard_ms", "next_sequence", "transaction_offset")

    def __init__(self, epoch: ProducerEpoch) -> None:
        self.epoch = epoch
        self.heard_ms = 0
        self.next_sequence = 0
        self._packed = b""
        self.transaction_offset = NO_OFFSET
        """Where its open transaction began; NO_OFFSET while it has none."""
        self.coordinator_epoch = _NO_COORDINATOR
        """Who decided its last transaction: a coordinator of an older epoch may decide none any more."""

    def copy(self) -> "ProducerState":
        """Copy what is known so far."""
        copied = ProducerState(self.epoch)
        copied.heard_ms, copied.next_sequence = self.heard_ms, self.next_sequence
        copied.transaction_offset, copied.coordinator_epoch = self.transaction_offset, self.coordinator_epoch
        copied._packed = self._packed
        return copied

    @property
    def batches(self) -> tuple[ProducedBatch, ...]:
        """List the latest batches, oldest first."""
        return tuple(map(ProducedBatch._make, _BATCH.iter_unpack(self._packed)))

    def renew(self, epoch: ProducerEpoch) -> None:
        """Begin a new epoch: its sequences start over, a transaction stays open until its marker comes."""
        self.epoch = epoch
        self.next_sequence = 0
        self._packed = b""

    def find(self, header: BatchHeader) -> ProducedBatch | None:
        """Find the batch that this one repeats, among those of the same epoch."""
        first_sequence, last_sequence = header.base_sequence, header.last_sequence
        for written in self.batches:
            if written.first_sequence == first_sequence and written.last_sequence == last_sequence:
                return written
        return None

    def remember(self, written: ProducedBatch) -> None:
        """Add the newest batch; one without a sequence only says that the producer lives."""
        self.heard_ms = written.appended_ms
        if written.last_sequence >= 0:
            self._packed = self._packed[-_PACKED_BEFORE_MAX:] + _BATCH.pack(*written)
            self.next_sequence = (written.last_sequence + 1) & _SEQUENCE_MASK


class Producers:
    """All producers of one partition."""

    __slots__ = ("_awaited", "_before", "_by_id", "aborted", "transactions")

    def __init__(self) -> None:
        self._by_id: dict[ProducerId, ProducerState] = {}
        self.transactions = OpenTransactions()
        """Those that are not over."""
        self.aborted: list[AbortedRange] = []
        """Those that markers aborted and that are not in an index yet."""
        self._before: dict[ProducerId, ProducerState | BatchHeader] = {}
        """Those with gathered batches: as they were without them, or the first of these where they were not known."""
        self._awaited: dict[ProducerId, BatchHeader] = {}
        """The first batches of producers that are not known, because it could not be written."""

    def __len__(self) -> int:
        return len(self._by_id)

    def get(self, producer_id: ProducerId) -> ProducerState | None:
        """Look a producer up."""
        return self._by_id.get(producer_id)

    def items(self) -> list[tuple[ProducerId, ProducerState]]:
        """List all producers."""
        return list(self._by_id.items())

    def check(self, header: BatchHeader) -> ProducedBatch | None:
        """Decide about a batch with a producer id: None to append it, or what it repeats; else raise Refusal."""
        first_sequence = header.base_sequence
        epoch = header.producer_epoch
        producer = self._by_id.get(header.producer_id)
        if producer is None:
            awaited = self._awaited.get(header.producer_id)
            if awaited is not None and epoch == awaited.producer_epoch and first_sequence != awaited.base_sequence:
                raise Refusal(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"producer {header.producer_id} sent sequence {first_sequence}; {awaited.base_sequence}, which "
                    "could not be written, comes first",
                )
            return None
        if epoch < producer.epoch:
            raise _fenced(ProducerIdentity(header.producer_id, epoch), producer)
        if epoch == producer.epoch:
            if first_sequence != producer.next_sequence and first_sequence >= 0:
                if (written := producer.find(header)) is not None:
                    return written
                raise Refusal(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"producer {header.producer_id} sent sequence {first_sequence}; {producer.next_sequence} comes "
                    "next",
                )
        elif first_sequence > 0:
            raise Refusal(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id} began epoch {epoch} with sequence {first_sequence} and not with 0",
            )
        if producer.transaction_offset >= 0 and not header.attributes & TRANSACTIONAL:
            raise Refusal(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {header.producer_id} has a transaction open and sent a batch that does not belong to it",
            )
        return None

    def check_marker(self, writer: ProducerIdentity, marker: Marker, version: TransactionVersion) -> bool:
        """Decide about the marker of a transaction: whether it is to be written, or is there already; else Refusal.

        From version 2 on a marker brings a new epoch (KIP-890), so that a late one cannot end what came after it.
        """
        producer = self._by_id.get(writer.id)
        if producer is None:
            return True
        if version >= TransactionVersion.EPOCH_PER_TRANSACTION and writer.epoch == producer.epoch:
            if producer.transaction_offset >= 0:
                raise _fenced(writer, producer)
            if marker.coordinator_epoch == producer.coordinator_epoch:
                return False
        if writer.epoch < producer.epoch:
            raise _fenced(writer, producer)
        if marker.coordinator_epoch < producer.coordinator_epoch:
            raise Refusal(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"a coordinator of epoch {marker.coordinator_epoch} wants to end a transaction of producer "
                f"{writer.id}; one of epoch {producer.coordinator_epoch} did so before",
            )
        return True

    def remember(
        self, header: BatchHeader, base_offset: Offset, appended_ms: int, marker: Marker | None = None
    ) -> None:
        """Note a batch that is in the log now, and of what it says as a marker."""
        producer = self._by_id.get(header.producer_id)
        if producer is None:
            producer = self._begin(header.producer_id, header.producer_epoch)
        elif producer.epoch != header.producer_epoch:
            producer.renew(header.producer_epoch)
        last_offset = Offset(base_offset + header.last_offset_delta)
        producer.remember(
            ProducedBatch(header.base_sequence, header.last_sequence, base_offset, last_offset, appended_ms)
        )
        if header.attributes & TRANSACTIONAL:
            if marker is not None:
                self._end(header.producer_id, producer, base_offset, marker)
            elif producer.transaction_offset < 0 and not header.is_control:
                producer.transaction_offset = base_offset
                self.transactions.begin(base_offset)

    def _end(self, producer_id: ProducerId, producer: ProducerState, marker_offset: Offset, marker: Marker) -> None:
        """Close a producer's transaction, if one is open: a marker may come where nothing was written."""
        producer.coordinator_epoch = marker.coordinator_epoch
        first_offset, producer.transaction_offset = producer.transaction_offset, NO_OFFSET
        if first_offset >= 0:
            self.transactions.decide(first_offset, marker_offset)
            if not marker.committed:
                decided_upto = self.transactions.undecided_from(Offset(marker_offset + 1))
                self.aborted.append(AbortedRange(producer_id, first_offset, marker_offset, decided_upto))

    def remember_gathered(
        self, header: BatchHeader, base_offset: Offset, appended_ms: int, marker: Marker | None = None
    ) -> None:
        """Note a batch that is not in the log yet, until `keep_gathered` or `forget_gathered`."""
        if header.producer_id not in self._before:
            producer = self._by_id.get(header.producer_id)
            self._before[header.producer_id] = header if producer is None else producer.copy()
        self.remember(header, base_offset, appended_ms, marker)

    def keep_gathered(self) -> None:
        """Note that all gathered batches are in the log now."""
        if self._before:
            if self._awaited:
                for producer_id in self._before:
                    self._awaited.pop(producer_id, None)
            self._before = {}

    def forget_gathered(self, end_offset: Offset) -> None:
        """Forget the batches that were gathered and not kept: those from the log's end on."""
        for producer_id, before in self._before.items():
            if isinstance(before, ProducerState):
                self._by_id[producer_id] = before
            else:
                self._by_id.pop(producer_id, None)
                self.await_first(before)
        self._before = {}
        self.transactions.truncate(end_offset)
        self.aborted = []

    def await_first(self, header: BatchHeader) -> None:
        """Note a batch that was right but could not be written: of an unknown producer it comes first."""
        producer_id = header.producer_id
        if producer_id < 0 or header.base_sequence < 0 or producer_id in self._by_id:
            return
        if len(self._awaited) >= PRODUCERS_PER_PARTITION_MAX:
            return
        awaited = self._awaited.get(producer_id)
        if awaited is None or awaited.producer_epoch < header.producer_epoch:
            self._awaited[producer_id] = header

    def expire(self, older_than_ms: int) -> None:
        """Forget producers that wrote nothing since this moment, and those that never did; not one in a transaction."""
        self._awaited.clear()
        for producer_id, producer in self.items():
            if producer.heard_ms < older_than_ms and producer.transaction_offset < 0:
                del self._by_id[producer_id]

    def encode(self) -> bytes:
        """Write the content of a `.snapshot` file."""
        entries = [
            _ENTRY.pack(
                producer_id,
                producer.epoch,
                written.last_sequence,
                written.last_offset,
                written.last_offset - written.base_offset,
                written.appended_ms,
                producer.coordinator_epoch,
                producer.transaction_offset,
            )
            for producer_id, producer in self._by_id.items()
            for written in producer.batches or (_no_batch(producer),)
        ]
        body = b"".join((_COUNT.pack(len(entries)), *entries))
        return _PREFIX.pack(_SNAPSHOT_VERSION, crc32c(body)) + body

    @classmethod
    def decode(cls, content: bytes) -> "Producers":
        """Read the content of a `.snapshot` file."""
        body = content[_PREFIX.size :]
        if len(body) < _COUNT.size:
            raise BadSnapshot("the producer snapshot is too short")
        version, crc = _PREFIX.unpack_from(content)
        (count,) = _COUNT.unpack_from(body)
        if version != _SNAPSHOT_VERSION or crc != crc32c(body) or len(body) != _COUNT.size + count * _ENTRY.size:
            raise BadSnapshot("the producer snapshot is damaged")
        producers = cls()
        for entry in _ENTRY.iter_unpack(body[_COUNT.size :]):
            producer_id, epoch, last_sequence, last_offset, delta, appended_ms, coordinator_epoch, first_offset = entry
            first_sequence = (last_sequence - delta) & _SEQUENCE_MASK if last_sequence >= 0 else last_sequence
            written = ProducedBatch(
                first_sequence, last_sequence, Offset(last_offset - delta), last_offset, appended_ms
            )
            producer = producers.get(producer_id)
            if producer is None or producer.epoch != epoch:
                producer = producers._begin(producer_id, epoch)
            producer.remember(written)
            producer.coordinator_epoch, producer.transaction_offset = coordinator_epoch, first_offset
        offsets = (producer.transaction_offset for producer in producers._by_id.values())
        producers.transactions = OpenTransactions(offset for offset in offsets if offset >= 0)
        return producers

    def _begin(self, producer_id: ProducerId, epoch: ProducerEpoch) -> ProducerState:
        if len(self._by_id) >= PRODUCERS_PER_PARTITION_MAX:
            self._forget_some()
        producer = self._by_id[producer_id] = ProducerState(epoch)
        return producer

    def _forget_some(self) -> None:
        """Forget the tenth that was not heard of for longest, so that this is not done for every newcomer.

        Not one in a transaction: nobody would know which records its marker is about.
        """
        silent = [producer_id for producer_id, producer in self._by_id.items() if producer.transaction_offset < 0]
        silent.sort(key=lambda producer_id: self._by_id[producer_id].heard_ms)
        for producer_id in silent[: len(self._by_id) // 10 + 1]:
            del self._by_id[producer_id]


def _fenced(writer: ProducerIdentity, producer: ProducerState) -> Refusal:
    return Refusal(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        f"producer {writer.id} is at epoch {producer.epoch}; a batch of epoch {writer.epoch} came too late",
    )


def _no_batch(producer: ProducerState) -> ProducedBatch:
    """Stand for a producer of which only a transaction marker was seen."""
    return ProducedBatch(NO_SEQUENCE, NO_SEQUENCE, NO_OFFSET, NO_OFFSET, producer.heard_ms)
