"""What a transaction coordinator can be asked, what it answers, and what it wants done. Plain data on all sides.

Every command is answered exactly once, by its ticket: most at once, one that came while a transaction was ending
perhaps when it has ended. Commands that nobody waits for (MarkersWritten, TransactionTimerDue) are answered with None.
"""

from dataclasses import dataclass

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_PRODUCER, NO_TIMESTAMP, ProducerId, TopicPartition
from riverlog.model.machine import Command
from riverlog.model.transactions import ProducerIdentity, TransactionOutcome, TransactionVersion
from riverlog.transactions.incarnations import NO_BATCH, BatchName
from riverlog.transactions.records import StateFact
from riverlog.transactions.states import NOBODY, Transaction, TransactionState


@dataclass(frozen=True, slots=True)
class InitProducer(Command[StateFact, "ProducerReply | NeedsProducerId"]):
    """Become the producer of a transactional id; whoever was it before is refused from here on."""

    transactional_id: str
    timeout_ms: int
    expected: ProducerIdentity | None = None
    """Who the sender is already, if it is; it only wants its next epoch."""
    new_id: ProducerId = NO_PRODUCER
    """An id that nobody had before, for when one is needed; without it the answer is NeedsProducerId."""


@dataclass(frozen=True, slots=True)
class AddPartitions(Command[StateFact, "PartitionsReply"]):
    """Take partitions into the producer's transaction; the first of them begin it."""

    transactional_id: str
    producer: ProducerIdentity
    partitions: tuple[TopicPartition, ...]
    version: TransactionVersion = TransactionVersion.CLASSIC


@dataclass(frozen=True, slots=True)
class VerifyPartitions(Command[StateFact, "PartitionsReply"]):
    """Ask whether partitions belong to the producer's open transaction."""

    transactional_id: str
    producer: ProducerIdentity
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class EndTransaction(Command[StateFact, "ProducerReply | NeedsProducerId"]):
    """Commit or abort the producer's transaction."""

    transactional_id: str
    producer: ProducerIdentity
    committed: bool
    version: TransactionVersion = TransactionVersion.CLASSIC
    new_id: ProducerId = NO_PRODUCER
    """As for InitProducer."""


@dataclass(frozen=True, slots=True)
class JoinBatch(Command[StateFact, "ProducerReply | NeedsProducerId"]):
    """Join an attempt of a task to a batch; the first to join opens it."""

    transactional_id: str
    owner: ProducerIdentity
    batch: BatchName
    task: int
    attempt: int
    beside: tuple[ProducerIdentity, ...] = ()
    """Members that must have joined before; without them there is nothing to join."""
    new_id: ProducerId = NO_PRODUCER
    """As for InitProducer."""


@dataclass(frozen=True, slots=True)
class EndBatch(Command[StateFact, "ProducerReply"]):
    """Commit what these members wrote in a batch and abort the others, or abort them all."""

    transactional_id: str
    owner: ProducerIdentity
    batch: BatchName
    committed: bool
    members: tuple[ProducerIdentity, ...] = ()
    marker: bytes = b""
    """Kept with the batch if it is committed, for the owner to read."""


@dataclass(frozen=True, slots=True)
class ProducerReply:
    """The producer that may write from here on, or why the sender may not."""

    code: ErrorCode = ErrorCode.NONE
    producer: ProducerIdentity = NOBODY


@dataclass(frozen=True, slots=True)
class NeedsProducerId:
    """The answer to a command that has to be given again, with an id that nobody had before."""


@dataclass(frozen=True, slots=True)
class PartitionsReply:
    """One code per partition, in the order of the command."""

    codes: tuple[ErrorCode, ...]


@dataclass(frozen=True, slots=True)
class DescribeBatches(Command[StateFact, "BatchesReply"]):
    """Return how far an incarnation of a pipeline has come."""

    transactional_id: str
    incarnation: str


@dataclass(frozen=True, slots=True)
class BatchesReply:
    """The last committed batch with its marker, and the one that is open."""

    code: ErrorCode = ErrorCode.NONE
    committed: int = NO_BATCH
    marker: bytes = b""
    open_batch: int | None = None


@dataclass(frozen=True, slots=True)
class DescribeTransactions(Command[StateFact, tuple[Transaction | None, ...]]):
    """Describe transactional ids, one after the other; None where there is no such id."""

    transactional_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ListTransactions(Command[StateFact, tuple[tuple[str, Transaction], ...]]):
    """Name the transactional ids; empty filters let everything pass."""

    states: frozenset[TransactionState] = frozenset()
    producer_ids: frozenset[ProducerId] = frozenset()
    started_before_ms: int = NO_TIMESTAMP
    """Only those that began their transaction, or were idle, before; -1 lets everything pass."""


@dataclass(frozen=True, slots=True)
class MarkersWritten(Command[StateFact, None]):
    """Every partition of a transaction knows how it ended."""

    transactional_id: str
    producer: ProducerIdentity


@dataclass(frozen=True, slots=True)
class TransactionTimerDue(Command[StateFact, None]):
    """The deadline that the machine named has come."""


ClientCommand = InitProducer | AddPartitions | VerifyPartitions | EndTransaction | JoinBatch | EndBatch
TransactionsCommand = (
    ClientCommand | DescribeBatches | DescribeTransactions | ListTransactions | MarkersWritten | TransactionTimerDue
)


@dataclass(frozen=True, slots=True)
class SendMarkers:
    """What the machine wants done: tell the partitions how the transaction ended, until all of them know."""

    transactional_id: str
    producer: ProducerIdentity
    committed: bool
    partitions: tuple[TopicPartition, ...]
    version: TransactionVersion


Effect = SendMarkers | TransactionOutcome
"""An outcome is to be counted: a transaction was decided so."""
