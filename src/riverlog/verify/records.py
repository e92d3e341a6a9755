"""What is wrong with records that are there: twice, out of order, two in one place, from nobody, or taken back."""

from collections import Counter
from collections.abc import Iterator
from itertools import groupby, pairwise

from riverlog.verify.anomalies import (
    AbortedButRead,
    Anomaly,
    Duplicated,
    InconsistentOffset,
    Invented,
    ReadTooEarly,
    Reordered,
    Rewound,
)
from riverlog.verify.evidence import PartitionEvidence
from riverlog.verify.history import Isolation, KnownOutcome, Reading, Sighting, Value, Write


def record_anomalies(partition: PartitionEvidence) -> Iterator[Anomaly]:
    """Look at every record of a partition that was acknowledged or seen."""
    yield from _places(partition)
    yield from _order(partition)
    for reading in partition.readings:
        for first, second in pairwise(reading.sightings):
            if second.offset <= first.offset:
                yield Rewound(partition.name, reading.reader, first.offset, second.offset)
    yield from _sightings(partition)


def _places(partition: PartitionEvidence) -> Iterator[Anomaly]:
    """One record in several places, several in one."""
    for value, write in partition.writes.items():
        offsets = partition.places.get(value, ())
        if write.once and len(offsets) > 1:
            yield Duplicated(partition.name, value, tuple(sorted(offsets)))
    for offset, group in groupby(partition.in_order, key=lambda place: place[0]):
        values = tuple(value for _, value in group)
        if len(values) > 1:
            yield InconsistentOffset(partition.name, offset, values)


def _order(partition: PartitionEvidence) -> Iterator[Reordered]:
    """Each producer's records, by their first places, against the order of sending.

    Places that stand for several records are left out: one of them is not there, and no order follows from it.
    """
    numbers = {value: number for number, value in enumerate(partition.writes)}
    newest: dict[str, Value] = {}
    reached: set[Value] = set()
    held = Counter(offset for offset, _ in partition.in_order)
    for offset, value in partition.in_order:
        write = partition.writes.get(value)
        if write is None or not write.once or value in reached or held[offset] > 1:
            continue
        reached.add(value)
        before = newest.setdefault(write.producer, value)
        if numbers[value] < numbers[before]:
            yield Reordered(partition.name, write.producer, earlier=value, later=before)
        else:
            newest[write.producer] = value


def _sightings(partition: PartitionEvidence) -> Iterator[Anomaly]:
    """Records that nobody should have been given."""
    for reading in partition.readings:
        committed_only = reading.isolation is Isolation.READ_COMMITTED
        for sighting in reading.sightings:
            write = partition.writes.get(sighting.value)
            if write is None:
                yield Invented(partition.name, sighting.offset, sighting.value)
            elif write.outcome is KnownOutcome.REFUSED:
                yield _not_to_be_read(reading, sighting, "was refused")
            elif write.transaction is not None and committed_only:
                yield from _of_transaction(reading, sighting, write)


def _of_transaction(reading: Reading, sighting: Sighting, write: Write) -> Iterator[Anomaly]:
    transaction = write.transaction
    assert transaction is not None
    if transaction.outcome is KnownOutcome.REFUSED:
        yield _not_to_be_read(reading, sighting, f"belongs to {transaction.name}, which was aborted")
    elif transaction.committing is None or sighting.moment < transaction.committing:
        yield ReadTooEarly(reading.partition, sighting.offset, sighting.value, reading.reader, transaction.name)


def _not_to_be_read(reading: Reading, sighting: Sighting, why: str) -> AbortedButRead:
    return AbortedButRead(reading.partition, sighting.offset, sighting.value, reading.reader, why)
