"""What clients did and saw, as they know it: writes, readings, committed offsets, transactions.

Whoever drives clients notes each act before it begins and each outcome once it is known. An outcome that never came is
UNKNOWN: it may have taken effect, then or later. The history numbers its moments, so that "before" has a meaning; it
judges nothing, `checker.py` does. Values name records: no two writes to a partition have the same.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, NewType

from riverlog.model.ids import NO_OFFSET, Offset, TopicPartition

Moment = NewType("Moment", int)
Value = str


class KnownOutcome(Enum):
    """How an act ended, as far as its client knows."""

    UNKNOWN = "unknown"
    DONE = "done"
    REFUSED = "refused"


class Isolation(Enum):
    """What a reader asks for: every record, or only those whose transactions are committed."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


class Sighting(NamedTuple):
    """A record as a reader was given it."""

    offset: Offset
    value: Value
    moment: Moment


@dataclass(slots=True, eq=False)
class Transaction:
    """What one client does as a whole; DONE means committed, REFUSED aborted."""

    name: str
    client: str
    began: Moment
    committing: Moment | None = None
    """When its end was asked for; None as long as nobody did."""
    outcome: KnownOutcome = KnownOutcome.UNKNOWN
    done: Moment | None = None
    """When its commit was acknowledged."""
    read: list[tuple[TopicPartition, Value]] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Write:
    """One record on its way; `once` where the producer promises to send it neither twice nor out of order."""

    producer: str
    partition: TopicPartition
    value: Value
    transaction: Transaction | None
    once: bool
    outcome: KnownOutcome = KnownOutcome.UNKNOWN
    offset: Offset = NO_OFFSET
    done: Moment | None = None


@dataclass(slots=True, eq=False)
class Reading:
    """A stretch of one partition that one reader went through, from `start` on, without a jump."""

    reader: str
    partition: TopicPartition
    start: Offset
    isolation: Isolation
    group: str | None
    began: Moment
    position: Offset
    """The next offset; all below it was passed, with or without a record."""
    at_end: bool = False
    """Whether it got to where the partition ended at a moment after `began`."""
    sightings: list[Sighting] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Commit:
    """A group's progress in one partition, written down; in a transaction it counts once that is committed."""

    group: str
    partition: TopicPartition
    offset: Offset
    began: Moment
    transaction: Transaction | None
    outcome: KnownOutcome = KnownOutcome.UNKNOWN
    done: Moment | None = None


@dataclass(slots=True, eq=False)
class Lookup:
    """A group's committed offset as somebody was told it; NO_OFFSET where there was none."""

    group: str
    partition: TopicPartition
    offset: Offset
    began: Moment
    done: Moment


class History:
    """Everything in the order in which it was noted."""

    def __init__(self) -> None:
        self.writes: list[Write] = []
        self.readings: list[Reading] = []
        self.commits: list[Commit] = []
        self.lookups: list[Lookup] = []
        self.transactions: list[Transaction] = []
        self._now = 0

    def moment(self) -> Moment:
        """Return a moment after all that were given before."""
        self._now += 1
        return Moment(self._now)

    # Writing ----------------------------------------------------------------------------------------------

    def write(
        self,
        producer: str,
        partition: TopicPartition,
        value: Value,
        *,
        transaction: Transaction | None = None,
        once: bool = True,
    ) -> Write:
        """Note that a record is about to be sent, behind all that this producer sent before."""
        written = Write(producer, partition, value, transaction, once)
        self.writes.append(written)
        return written

    def acknowledged(self, write: Write, offset: Offset = NO_OFFSET) -> None:
        """Note the promise to keep a record; some promises do not say where."""
        write.outcome, write.offset, write.done = KnownOutcome.DONE, offset, self.moment()

    def refused(self, write: Write) -> None:
        """Note that a record was turned away for certain, so that nobody may ever read it."""
        write.outcome = KnownOutcome.REFUSED

    # Transactions -----------------------------------------------------------------------------------------

    def begin(self, client: str, name: str | None = None) -> Transaction:
        """Note that a client begins a transaction; its earlier ones are over."""
        name = name or f"{client}/{len(self.transactions)}"
        transaction = Transaction(name, client, self.moment())
        self.transactions.append(transaction)
        return transaction

    def committing(self, transaction: Transaction) -> None:
        """Note that a commit is about to be asked for."""
        transaction.committing = self.moment()

    def committed(self, transaction: Transaction) -> None:
        """Note the promise that the transaction takes effect as a whole, whatever was said about each write."""
        transaction.outcome, transaction.done = KnownOutcome.DONE, self.moment()

    def aborted(self, transaction: Transaction) -> None:
        """Note that nothing of the transaction took effect."""
        transaction.outcome = KnownOutcome.REFUSED

    # Reading ----------------------------------------------------------------------------------------------

    def read_from(
        self,
        reader: str,
        partition: TopicPartition,
        start: Offset,
        *,
        isolation: Isolation = Isolation.READ_UNCOMMITTED,
        group: str | None = None,
    ) -> Reading:
        """Note that a reader begins at an offset: after a seek, or when a partition comes to it."""
        reading = Reading(reader, partition, start, isolation, group, self.moment(), start)
        self.readings.append(reading)
        return reading

    def saw(
        self, reading: Reading, records: Iterable[tuple[Offset, Value]], transaction: Transaction | None = None
    ) -> None:
        """Note records in the order in which they were given out; `transaction` is the one that works on them."""
        moment = self.moment()
        for offset, value in records:
            reading.sightings.append(Sighting(offset, value, moment))
            reading.position = Offset(offset + 1)
            if transaction is not None:
                transaction.read.append((reading.partition, value))

    def passed(self, reading: Reading, position: Offset, *, at_end: bool = False) -> None:
        """Note where a reader stands; `at_end` if that is where the partition ended after the reading began."""
        reading.position = max(reading.position, position)
        reading.at_end = reading.at_end or at_end

    # Committed offsets ------------------------------------------------------------------------------------

    def commit(
        self, group: str, partition: TopicPartition, offset: Offset, *, transaction: Transaction | None = None
    ) -> Commit:
        """Note that a group's progress is about to be written down."""
        commit = Commit(group, partition, offset, self.moment(), transaction)
        self.commits.append(commit)
        return commit

    def commit_acknowledged(self, commit: Commit) -> None:
        """Note that the offset is written down."""
        commit.outcome, commit.done = KnownOutcome.DONE, self.moment()

    def commit_refused(self, commit: Commit) -> None:
        """Note that the offset was not written down, for certain."""
        commit.outcome = KnownOutcome.REFUSED

    def looked_up(self, group: str, partition: TopicPartition, offset: Offset, *, began: Moment) -> None:
        """Note a group's committed offset as it was told in answer to a question asked at `began`."""
        self.lookups.append(Lookup(group, partition, offset, began, self.moment()))
