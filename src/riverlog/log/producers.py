"""What idempotent producers wrote to a partition lately, so that a retry is recognised and a gap is refused.

For each producer id: its epoch and its last five batches. Rules as in Kafka: an older epoch is fenced, a new
epoch begins at sequence 0, a producer never seen may begin anywhere (its past may have been deleted), a repeated
batch is answered with the offsets it has, anything else out of sequence is refused. Where the first batch of a
producer could not be written, it is awaited: those behind it may not overtake it. Sequences run from 0 to 2^31 - 1 and
start over. Pure; the binary form is Kafka's `.snapshot` file, in which a producer's batches stand
one behind the other, oldest first (Kafka writes and keeps the last one only).
"""

from collections import deque
from struct import Struct
from typing import Final, NamedTuple

from fastcrc.crc32 import iscsi as crc32c

from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NO_OFFSET, NO_SEQUENCE, Offset, ProducerEpoch, ProducerId
from riverlog.model.limits import PRODUCER_BATCHES_REMEMBERED, PRODUCERS_PER_PARTITION_MAX
from riverlog.records.batch import BatchHeader

_PREFIX: Final = Struct(">hI")
_COUNT: Final = Struct(">i")
_ENTRY: Final = Struct(">qhiqiqiq")
_SNAPSHOT_VERSION: Final = 1
_NO_COORDINATOR: Final = -1
_NO_TRANSACTION: Final = -1
_SEQUENCE_MASK: Final = 0x7FFFFFFF


class BadSnapshot(ValueError):
    """A producer snapshot is damaged; the state is rebuilt from the log instead."""


class Written(NamedTuple):
    """A batch that a producer wrote: its sequences, where it lies, and when it was appended."""

    first_sequence: int
    last_sequence: int
    base_offset: Offset
    last_offset: Offset
    appended_ms: int


class Producer:
    """One producer id: the epoch it writes in, and its latest batches of that epoch, oldest first."""

    __slots__ = ("batches", "epoch", "heard_ms", "next_sequence")

    def __init__(self, epoch: ProducerEpoch) -> None:
        self.epoch = epoch
        self.heard_ms = 0
        self.next_sequence = 0
        self.batches: deque[Written] = deque(maxlen=PRODUCER_BATCHES_REMEMBERED)

    def copy(self) -> "Producer":
        """Give what is known so far, unmoved by what comes after."""
        copied = Producer(self.epoch)
        copied.heard_ms, copied.next_sequence = self.heard_ms, self.next_sequence
        copied.batches.extend(self.batches)
        return copied

    def remember(self, written: Written) -> None:
        """Add the newest batch; a transaction marker has no sequence and only says that the producer lives."""
        self.heard_ms = written.appended_ms
        if written.last_sequence >= 0:
            self.batches.append(written)
            self.next_sequence = (written.last_sequence + 1) & _SEQUENCE_MASK


class Producers:
    """All producers of one partition."""

    __slots__ = ("_awaited", "_before", "_by_id")

    def __init__(self) -> None:
        self._by_id: dict[ProducerId, Producer] = {}
        self._before: dict[ProducerId, Producer | BatchHeader] = {}
        """Those with gathered batches: as they were without them, or the first of these where they were not known."""
        self._awaited: dict[ProducerId, BatchHeader] = {}
        """The first batches of producers that are not known, because it could not be written."""

    def __len__(self) -> int:
        return len(self._by_id)

    def get(self, producer_id: ProducerId) -> Producer | None:
        """Look a producer up."""
        return self._by_id.get(producer_id)

    def items(self) -> list[tuple[ProducerId, Producer]]:
        """List all producers."""
        return list(self._by_id.items())

    def check(self, header: BatchHeader) -> Written | None:
        """Decide about a batch with a producer id: None to append it, or what it repeats; else raise Refusal."""
        first_sequence = header.base_sequence
        epoch = header.producer_epoch
        if first_sequence < 0 or epoch < 0:
            raise Refusal(
                ErrorCode.INVALID_RECORD,
                f"a batch of producer {header.producer_id} has sequence {first_sequence} and epoch {epoch}",
            )
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
        if epoch == producer.epoch:
            if first_sequence == producer.next_sequence:
                return None
            last_sequence = header.last_sequence
            for written in producer.batches:
                if written.first_sequence == first_sequence and written.last_sequence == last_sequence:
                    return written
            raise Refusal(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id} sent sequence {first_sequence}; {producer.next_sequence} comes next",
            )
        if epoch < producer.epoch:
            raise Refusal(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {header.producer_id} is at epoch {producer.epoch}; a batch of epoch {epoch} came too late",
            )
        if first_sequence != 0:
            raise Refusal(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id} began epoch {epoch} with sequence {first_sequence} and not with 0",
            )
        return None

    def remember(self, header: BatchHeader, base_offset: Offset, appended_ms: int) -> None:
        """Take note of a batch that is in the log now."""
        producer = self._by_id.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            producer = self._begin(header.producer_id, header.producer_epoch)
        last_offset = Offset(base_offset + header.last_offset_delta)
        producer.remember(Written(header.base_sequence, header.last_sequence, base_offset, last_offset, appended_ms))

    def remember_gathered(self, header: BatchHeader, base_offset: Offset, appended_ms: int) -> None:
        """Take note of a batch that is not in the log yet, until `keep_gathered` or `forget_gathered`."""
        if header.producer_id not in self._before:
            producer = self._by_id.get(header.producer_id)
            self._before[header.producer_id] = header if producer is None else producer.copy()
        self.remember(header, base_offset, appended_ms)

    def keep_gathered(self) -> None:
        """Take note that all gathered batches are in the log now."""
        if self._before:
            if self._awaited:
                for producer_id in self._before:
                    self._awaited.pop(producer_id, None)
            self._before = {}

    def forget_gathered(self) -> None:
        """Know of no batch that was gathered since the last time they were kept."""
        for producer_id, before in self._before.items():
            if isinstance(before, Producer):
                self._by_id[producer_id] = before
            else:
                self._by_id.pop(producer_id, None)
                self.await_first(before)
        self._before = {}

    def await_first(self, header: BatchHeader) -> None:
        """Take note of a batch that was right but could not be written: of an unknown producer it comes first."""
        producer_id = header.producer_id
        if producer_id < 0 or producer_id in self._by_id or len(self._awaited) >= PRODUCERS_PER_PARTITION_MAX:
            return
        awaited = self._awaited.get(producer_id)
        if awaited is None or awaited.producer_epoch < header.producer_epoch:
            self._awaited[producer_id] = header

    def expire(self, older_than_ms: int) -> None:
        """Forget producers that wrote nothing since this moment, and those that never did."""
        self._awaited.clear()
        for producer_id, producer in self.items():
            if producer.heard_ms < older_than_ms:
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
                _NO_COORDINATOR,
                _NO_TRANSACTION,
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
        for producer_id, epoch, last_sequence, last_offset, delta, appended_ms, _, _ in _ENTRY.iter_unpack(
            body[_COUNT.size :]
        ):
            first_sequence = (last_sequence - delta) & _SEQUENCE_MASK if last_sequence >= 0 else last_sequence
            written = Written(first_sequence, last_sequence, Offset(last_offset - delta), last_offset, appended_ms)
            producer = producers.get(producer_id)
            if producer is None or producer.epoch != epoch:
                producer = producers._begin(producer_id, epoch)
            producer.remember(written)
        return producers

    def _begin(self, producer_id: ProducerId, epoch: ProducerEpoch) -> Producer:
        if len(self._by_id) >= PRODUCERS_PER_PARTITION_MAX:
            self._forget_some()
        producer = self._by_id[producer_id] = Producer(epoch)
        return producer

    def _forget_some(self) -> None:
        """Forget the tenth that was not heard of for longest, so that this is not done for every newcomer."""
        heard = sorted(self._by_id, key=lambda producer_id: self._by_id[producer_id].heard_ms)
        for producer_id in heard[: len(heard) // 10 + 1]:
            del self._by_id[producer_id]


def _no_batch(producer: Producer) -> Written:
    """Stand for a producer of which only a transaction marker was seen."""
    return Written(NO_SEQUENCE, NO_SEQUENCE, NO_OFFSET, NO_OFFSET, producer.heard_ms)
