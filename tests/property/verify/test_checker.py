"""The judge itself is judged: true histories are acquitted, and each way of spoiling one is named for what it is."""

from collections.abc import Callable, Iterable
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from riverlog.model.ids import NO_OFFSET, Offset, TopicPartition
from riverlog.verify.anomalies import (
    KINDS,
    AbortedButRead,
    Anomaly,
    CommitBeyondEnd,
    CommitInvented,
    CommitWentBack,
    Cycle,
    Duplicated,
    InconsistentOffset,
    Invented,
    Lost,
    ReadTooEarly,
    Reordered,
    Rewound,
    Skipped,
    TornTransaction,
    Unseen,
)
from riverlog.verify.checker import judge
from riverlog.verify.history import Commit, History, Isolation, KnownOutcome, Reading, Sighting, Write
from tests.support.histories import COPIERS, GROUP, Model, last_readings

HISTORIES = st.tuples(st.randoms(use_true_random=False), st.integers(5, 60))


def pick(random: Random, candidates: Iterable[object]) -> object:
    found = list(candidates)
    assume(found)
    return random.choice(found)


def readings_of(history: History, partition: TopicPartition) -> list[Reading]:
    return [reading for reading in history.readings if reading.partition == partition]


def forget(readings: Iterable[Reading], *values: str) -> None:
    for reading in readings:
        reading.sightings = [sighting for sighting in reading.sightings if sighting.value not in values]


def pick_write(history: History, random: Random, fits: Callable[[Write], bool]) -> Write:
    write = pick(random, (write for write in history.writes if fits(write)))
    assert isinstance(write, Write)
    return write


def is_promised(write: Write) -> bool:
    return write.outcome is KnownOutcome.DONE and (
        write.transaction is None or write.transaction.outcome is KnownOutcome.DONE
    )


def lose_a_promised_record(history: History, random: Random) -> None:
    write = pick_write(history, random, is_promised)
    forget(readings_of(history, write.partition), write.value)


def lose_a_shown_record(history: History, random: Random) -> None:
    shown = [
        (reading, sighting.value)
        for reading in history.readings
        if not reading.at_end
        for sighting in reading.sightings
    ]
    reading, value = pick(random, shown)  # type: ignore[misc]
    forget((last for last in last_readings(history) if last.partition == reading.partition), value)


def read_not_far_enough(history: History, random: Random) -> None:
    write = pick_write(history, random, lambda write: is_promised(write) and write.offset != NO_OFFSET)
    for reading in readings_of(history, write.partition):
        reading.sightings = [sighting for sighting in reading.sightings if sighting.offset < write.offset]
        reading.position = min(reading.position, write.offset)
        reading.at_end = False


def repeat_a_record(history: History, random: Random) -> None:
    reading = pick_reading(history, random, lambda reading: bool(reading.sightings))
    again = random.choice(reading.sightings)
    offset = max(reading.position for reading in readings_of(history, reading.partition))
    history.saw(reading, [(offset, again.value)])


def pick_reading(history: History, random: Random, fits: Callable[[Reading], bool]) -> Reading:
    reading = pick(random, (reading for reading in history.readings if fits(reading)))
    assert isinstance(reading, Reading)
    return reading


def swap_two_records_of_a_producer(history: History, random: Random) -> None:
    seen = {(reading.partition, sighting.value) for reading in last_readings(history) for sighting in reading.sightings}
    first = pick_write(history, random, lambda write: (write.partition, write.value) in seen)
    second = pick_write(
        history,
        random,
        lambda write: (
            write is not first
            and (write.producer, write.partition) == (first.producer, first.partition)
            and (write.partition, write.value) in seen
        ),
    )
    swapped = {first.value: second.value, second.value: first.value}
    for reading in readings_of(history, first.partition):
        reading.sightings = [
            sighting._replace(value=swapped.get(sighting.value, sighting.value)) for sighting in reading.sightings
        ]
    first.offset, second.offset = second.offset, first.offset


def show_what_nobody_sent(history: History, random: Random) -> None:
    reading = pick_reading(history, random, lambda reading: bool(reading.sightings))
    number = random.randrange(len(reading.sightings))
    reading.sightings[number] = reading.sightings[number]._replace(value="nobody's")


def show_two_records_at_one_offset(history: History, random: Random) -> None:
    reading = pick_reading(history, random, lambda reading: bool(reading.sightings) and reading.at_end)
    number = random.randrange(len(reading.sightings))
    known = {
        sighting.offset
        for each in readings_of(history, reading.partition)
        if each is not reading
        for sighting in each.sightings
    }
    assume(reading.sightings[number].offset in known)  # one witness alone contradicts nobody
    other = history.write("producer 9", reading.partition, "another")
    reading.sightings[number] = reading.sightings[number]._replace(value=other.value)


def skip_a_record(history: History, random: Random) -> None:
    reading = pick_reading(history, random, lambda reading: bool(reading.sightings) and not reading.at_end)
    sighting = random.choice(reading.sightings)
    forget([reading], sighting.value)


def let_a_group_skip_a_record(history: History, random: Random) -> None:
    last = {lookup.partition: lookup.offset for lookup in history.lookups}
    shown = [
        (reading, number)
        for reading in history.readings
        if reading.group is not None
        for number, sighting in enumerate(reading.sightings)
        if number and sighting.offset < last[reading.partition]
    ]
    reading, number = pick(random, shown)  # type: ignore[misc]
    sighting = reading.sightings[number]
    members = [each for each in readings_of(history, reading.partition) if each.group == GROUP]
    assume(min(each.start for each in members) < sighting.offset)
    for member in members:  # the one that had it lets go just before it, and goes on just behind it
        if member.start <= sighting.offset < member.position:
            later = history.read_from("member 9", member.partition, Offset(sighting.offset + 1), group=GROUP)
            later.isolation = member.isolation
            later.sightings = [each for each in member.sightings if each.offset > sighting.offset]
            later.position = member.position
            member.sightings = [each for each in member.sightings if each.offset < sighting.offset]
            member.position = sighting.offset


def turn_a_reader_back(history: History, random: Random) -> None:
    reading = pick_reading(history, random, lambda reading: len(reading.sightings) > 1)
    number = random.randrange(1, len(reading.sightings))
    sightings = reading.sightings
    sightings[number - 1], sightings[number] = sightings[number], sightings[number - 1]


def forget_a_commit(history: History, random: Random) -> None:
    done = {
        commit.partition for commit in history.commits if commit.outcome is KnownOutcome.DONE and commit.group == GROUP
    }
    partition = pick(random, sorted(done))
    lookup = [lookup for lookup in history.lookups if lookup.partition == partition][-1]
    lookup.offset = NO_OFFSET


def _place(commit: Commit) -> tuple[TopicPartition, Offset]:
    return commit.partition, commit.offset


def lose_a_committed_transaction(history: History, random: Random) -> None:
    done = {write.transaction for write in history.writes if write.transaction and write.transaction.done is not None}
    lost = pick(random, sorted(done, key=lambda transaction: transaction.began))
    writes = [write for write in history.writes if write.transaction is lost]
    for write in writes:  # the commit alone is a promise
        write.outcome, write.offset, write.done = KnownOutcome.UNKNOWN, NO_OFFSET, None
    forget(history.readings, *(write.value for write in writes))


def forget_an_offset_of_a_committed_transaction(history: History, random: Random) -> None:
    committed = [commit for commit in history.commits if commit.transaction and commit.transaction.done is not None]
    partition = pick(random, sorted({commit.partition for commit in committed}))
    lookups = [each for each in history.lookups if (each.group, each.partition) == (COPIERS, partition)]
    lookups[-1].offset = NO_OFFSET


def tell_an_offset_from_before_a_committed_transaction(history: History, random: Random) -> None:
    committed = [commit for commit in history.commits if commit.transaction and commit.transaction.done is not None]
    replaced = [
        older
        for older in committed
        if any(later.partition == older.partition and later.began > older.began for later in committed)
        and sum((each.group, *_place(each)) == (COPIERS, *_place(older)) for each in history.commits) == 1
    ]
    older = pick(random, replaced)
    assert isinstance(older, Commit)
    lookups = [each for each in history.lookups if (each.group, each.partition) == (COPIERS, older.partition)]
    lookups[-1].offset = older.offset


def tell_an_older_commit(history: History, random: Random) -> None:
    done = [commit for commit in history.commits if commit.outcome is KnownOutcome.DONE and commit.group == GROUP]
    replaced = [
        older
        for older in done
        if any(later.partition == older.partition and later.began > older.began for later in done)
        and sum((each.group, *_place(each)) == (GROUP, *_place(older)) for each in history.commits) == 1
    ]
    older = pick(random, replaced)
    [lookup for lookup in history.lookups if lookup.partition == older.partition][-1].offset = older.offset  # type: ignore[attr-defined]


def tell_a_commit_of_nobody(history: History, random: Random) -> None:
    lookup = random.choice(history.lookups)
    lookup.offset = Offset(1_000_000)


def cut_the_tail(history: History, random: Random) -> None:
    committed = {lookup.partition: lookup.offset for lookup in history.lookups if lookup.offset > 0}
    partition = pick(random, sorted(committed))
    end = Offset(random.randrange(committed[partition]))  # type: ignore[index]
    for reading in last_readings(history):
        if reading.partition == partition:
            reading.sightings = [sighting for sighting in reading.sightings if sighting.offset < end]
            reading.position = end


def show_an_aborted_record(history: History, random: Random) -> None:
    write = pick_write(
        history,
        random,
        lambda write: write.transaction is not None and write.transaction.outcome is KnownOutcome.REFUSED,
    )
    reading = next(
        reading
        for reading in readings_of(history, write.partition)
        if reading.at_end and reading.isolation is Isolation.READ_COMMITTED
    )
    reading.sightings = sorted([*reading.sightings, Sighting(write.offset, write.value, reading.began)])


def show_a_refused_record(history: History, random: Random) -> None:
    write = pick_write(history, random, lambda write: write.outcome is KnownOutcome.REFUSED)
    reading = random.choice(readings_of(history, write.partition))
    history.saw(reading, [(reading.position, write.value)])


def commit_after_it_was_read(history: History, random: Random) -> None:
    seen = {
        sighting.value
        for reading in last_readings(history)
        if reading.isolation is Isolation.READ_COMMITTED
        for sighting in reading.sightings
    }
    write = pick_write(history, random, lambda write: write.transaction is not None and write.value in seen)
    assert write.transaction is not None
    history.committing(write.transaction)


def tear_a_transaction(history: History, random: Random) -> None:
    seen = {sighting.value for reading in last_readings(history) for sighting in reading.sightings}
    write = pick_write(
        history,
        random,
        lambda write: (
            write.transaction is not None
            and is_promised(write)
            and any(
                other is not write and other.transaction is write.transaction and other.value in seen
                for other in history.writes
            )
        ),
    )
    forget(readings_of(history, write.partition), write.value)


def read_in_a_circle(history: History, random: Random) -> None:
    done = [write for write in history.writes if write.transaction is not None and is_promised(write)]
    first = pick_write(history, random, lambda write: write in done)
    second = pick_write(history, random, lambda write: write in done and write.transaction is not first.transaction)
    assert first.transaction is not None
    assert second.transaction is not None
    first.transaction.read.append((second.partition, second.value))
    second.transaction.read.append((first.partition, first.value))


CRIMES: dict[Callable[[History, Random], None], type[Anomaly]] = {
    lose_a_promised_record: Lost,
    lose_a_shown_record: Lost,
    lose_a_committed_transaction: Lost,
    read_not_far_enough: Unseen,
    repeat_a_record: Duplicated,
    swap_two_records_of_a_producer: Reordered,
    show_what_nobody_sent: Invented,
    show_two_records_at_one_offset: InconsistentOffset,
    skip_a_record: Skipped,
    let_a_group_skip_a_record: Skipped,
    turn_a_reader_back: Rewound,
    forget_a_commit: CommitWentBack,
    tell_an_older_commit: CommitWentBack,
    forget_an_offset_of_a_committed_transaction: CommitWentBack,
    tell_an_offset_from_before_a_committed_transaction: CommitWentBack,
    tell_a_commit_of_nobody: CommitInvented,
    cut_the_tail: CommitBeyondEnd,
    show_an_aborted_record: AbortedButRead,
    show_a_refused_record: AbortedButRead,
    commit_after_it_was_read: ReadTooEarly,
    tear_a_transaction: TornTransaction,
    read_in_a_circle: Cycle,
}


def test_every_anomaly_has_a_crime() -> None:
    assert {*CRIMES.values()} == {*KINDS}


@given(HISTORIES)
@hypothesis_settings(max_examples=80, deadline=None)
def test_true_histories_are_acquitted(drawn: tuple[Random, int]) -> None:
    history = Model(drawn[0]).run(drawn[1])
    verdict = judge(history)
    assert [anomaly.sentence for anomaly in verdict.anomalies] == []
    told = verdict.acknowledged + verdict.refused + verdict.aborted + verdict.unknown
    assert verdict.written == told == len(history.writes)


@pytest.mark.parametrize("commit_crime", CRIMES, ids=lambda crime: crime.__name__)
@given(HISTORIES)
@hypothesis_settings(max_examples=15, deadline=None)
def test_each_crime_is_named(commit_crime: Callable[[History, Random], None], drawn: tuple[Random, int]) -> None:
    random, steps = drawn
    history = Model(random).run(steps)
    commit_crime(history, random)
    verdict = judge(history)
    assert CRIMES[commit_crime] in {type(anomaly) for anomaly in verdict.anomalies}
    assert judge(history) == verdict
