"""What is wrong with records that are not there: lost, skipped, never come to.

A reader *passes* every offset between its start and its position, and must have been given each record known to stand
there. One that came to the end of a partition must also have been given all that was promised or shown before it began,
wherever that stands.
"""

from bisect import bisect_left
from collections.abc import Iterator

from riverlog.model.ids import NO_OFFSET, Offset
from riverlog.verify.anomalies import Anomaly, Lost, Skipped, Unseen
from riverlog.verify.evidence import Evidence, PartitionEvidence
from riverlog.verify.history import Isolation, KnownOutcome, Reading, Value, Write

Missing = tuple[PartitionEvidence, Value]
_Place = tuple[Offset, Value]


def missing_records(partition: PartitionEvidence, evidence: Evidence) -> tuple[list[Missing], list[Anomaly]]:
    """Find what each reader should have been given and was not; give the records that are gone, and the anomalies."""
    lost: dict[Value, Lost] = {}
    skipped: list[Anomaly] = []
    places = {isolation: _places(partition, evidence, isolation) for isolation in Isolation}
    for reading in partition.readings:
        given = {sighting.value for sighting in reading.sightings}
        offsets = {sighting.offset for sighting in reading.sightings}
        for offset, value in _owed(partition, evidence, reading, places[reading.isolation]):
            if value in given:
                continue
            if partition.last_seen.get(value, -1) > reading.began:
                if offset not in offsets:  # where it was given another record, the place is inconsistent
                    skipped.append(Skipped(partition.name, offset, value, reading.reader))
            elif value not in lost:  # nobody found it later
                write = partition.writes.get(value)
                lost[value] = Lost(partition.name, offset, value, _was(write), reading.reader)
    unseen = [
        Unseen(partition.name, write.offset, value)
        for value, write in partition.writes.items()
        if evidence.promised(write) and value not in partition.first_seen and value not in lost
    ]
    gone = [(partition, value) for value in (*lost, *(each.value for each in unseen))]
    return gone, [*lost.values(), *unseen, *skipped]


def skipped_by_group(
    partition: PartitionEvidence, evidence: Evidence, group: str, committed: Offset
) -> Iterator[Skipped]:
    """Find records before a group's committed offset that none of its members was ever given."""
    readings = [reading for reading in partition.readings if reading.group == group]
    if not readings:
        return
    given = {sighting.offset for reading in readings for sighting in reading.sightings}
    places = _places(partition, evidence, readings[0].isolation)
    start = min(reading.start for reading in readings)
    for offset, value in _between(places, start, committed):
        if offset not in given and value in partition.first_seen:  # what nobody saw is lost, which is said elsewhere
            yield Skipped(partition.name, offset, value, f"group {group}")


def _places(partition: PartitionEvidence, evidence: Evidence, isolation: Isolation) -> list[_Place]:
    return [
        (offset, value)
        for offset, value in partition.in_order
        if evidence.visible(partition.writes.get(value), isolation)
    ]


def _owed(partition: PartitionEvidence, evidence: Evidence, reading: Reading, places: list[_Place]) -> Iterator[_Place]:
    yield from _between(places, reading.start, reading.position)
    if not reading.at_end:
        return
    for offset, value in places[bisect_left(places, (reading.position, "")) :]:
        shown = partition.first_seen.get(value)
        if (shown is not None and shown < reading.began) or _promised_before(partition, evidence, value, reading):
            yield offset, value
    if reading.start == 0:
        for value, write in partition.writes.items():
            if value not in partition.places and _promised_before(partition, evidence, value, reading):
                yield NO_OFFSET, write.value


def _promised_before(partition: PartitionEvidence, evidence: Evidence, value: Value, reading: Reading) -> bool:
    write: Write | None = partition.writes.get(value)
    since = None if write is None else evidence.promised_since(write, reading.isolation)
    return since is not None and since < reading.began


def _was(write: Write | None) -> str:
    if write is None:
        return "shown"
    if write.outcome is KnownOutcome.DONE:
        return "acknowledged"
    transaction = write.transaction
    return f"committed by {transaction.name}" if transaction is not None and transaction.done is not None else "shown"


def _between(places: list[_Place], start: Offset, end: Offset) -> list[_Place]:
    return places[bisect_left(places, (start, "")) : bisect_left(places, (end, ""))]
