"""A history sorted by partition, so that its rules can be looked up instead of searched for."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from riverlog.model.ids import NO_OFFSET, Offset, TopicPartition
from riverlog.verify.history import History, Isolation, KnownOutcome, Moment, Reading, Transaction, Value, Write


@dataclass(slots=True)
class PartitionEvidence:
    """All that is known of one partition."""

    name: TopicPartition
    writes: dict[Value, Write] = field(default_factory=dict)
    """In the order of sending."""
    readings: list[Reading] = field(default_factory=list)
    places: dict[Value, set[Offset]] = field(default_factory=dict)
    """Where each record stands, by what was acknowledged and by what was seen."""
    in_order: list[tuple[Offset, Value]] = field(default_factory=list)
    """The same by offset."""
    first_seen: dict[Value, Moment] = field(default_factory=dict)
    last_seen: dict[Value, Moment] = field(default_factory=dict)


@dataclass(slots=True)
class Evidence:
    """All partitions in order, and what became of the transactions."""

    partitions: list[PartitionEvidence]
    committed: set[Transaction]
    """Those that took effect: known, or betrayed by a record that a reader of committed records was given."""
    seen_of: dict[Transaction, list[Value]]
    """What readers of committed records were given of each transaction."""

    def visible(self, write: Write | None, isolation: Isolation) -> bool:
        """Return whether a record that is there must be given to a reader; unknown transactions oblige nobody."""
        if isolation is Isolation.READ_UNCOMMITTED or write is None or write.transaction is None:
            return True
        return write.transaction in self.committed

    def promised(self, write: Write) -> bool:
        """Return whether a record must be there for good: it, or its whole transaction, was acknowledged."""
        transaction = write.transaction
        if transaction is None or write.outcome is KnownOutcome.REFUSED:
            return transaction is None and write.outcome is KnownOutcome.DONE
        is_acknowledged = write.outcome is KnownOutcome.DONE or transaction.outcome is KnownOutcome.DONE
        return is_acknowledged and transaction in self.committed

    def promised_since(self, write: Write, isolation: Isolation) -> Moment | None:
        """Return from when on a reader must be given a record; None as long as nobody need be."""
        if not self.promised(write):
            return None
        transaction = write.transaction
        if transaction is None:
            return write.done
        if isolation is Isolation.READ_UNCOMMITTED and write.done is not None:
            return write.done
        return transaction.done


def gather(history: History) -> Evidence:
    """Go through the history once."""
    partitions: dict[TopicPartition, PartitionEvidence] = {}

    def of(name: TopicPartition) -> PartitionEvidence:
        return partitions.setdefault(name, PartitionEvidence(name))

    for write in history.writes:
        partition = of(write.partition)
        assert write.value not in partition.writes, f"{write.value} was written to {write.partition} twice"
        partition.writes[write.value] = write
        if write.outcome is KnownOutcome.DONE and write.offset != NO_OFFSET:
            partition.places.setdefault(write.value, set()).add(write.offset)
    for reading in history.readings:
        partition = of(reading.partition)
        partition.readings.append(reading)
        for offset, value, moment in reading.sightings:
            partition.places.setdefault(value, set()).add(offset)
            partition.first_seen[value] = min(moment, partition.first_seen.get(value, moment))
            partition.last_seen[value] = max(moment, partition.last_seen.get(value, moment))
    for partition in partitions.values():
        partition.in_order = sorted((offset, value) for value, places in partition.places.items() for offset in places)
    seen_of = _seen_of(partitions)
    committed = {
        transaction
        for transaction in history.transactions
        if transaction.outcome is KnownOutcome.DONE
        or (
            transaction.outcome is KnownOutcome.UNKNOWN
            and transaction.committing is not None
            and transaction in seen_of
        )
    }
    return Evidence([partitions[name] for name in sorted(partitions)], committed, seen_of)


def _seen_of(partitions: dict[TopicPartition, PartitionEvidence]) -> dict[Transaction, list[Value]]:
    found: dict[Transaction, dict[Value, None]] = {}
    for partition in partitions.values():
        for value in _shown_as_committed(partition):
            write = partition.writes.get(value)
            if write is not None and write.transaction is not None:
                found.setdefault(write.transaction, {})[value] = None
    return {transaction: list(values) for transaction, values in found.items()}


def _shown_as_committed(partition: PartitionEvidence) -> Iterator[Value]:
    for reading in partition.readings:
        if reading.isolation is Isolation.READ_COMMITTED:
            for sighting in reading.sightings:
                yield sighting.value
