"""Committed offsets and transactions."""

from hypothesis import given
from hypothesis import strategies as st

from riverlog.groups.offsets.committed_offsets import Offsets
from riverlog.groups.records import OffsetCommitKey, OffsetCommitValue
from riverlog.model.ids import NO_PRODUCER, ProducerId, TopicPartition

ONE = ProducerId(1)
TWO = ProducerId(2)
PARTITION = TopicPartition("t", 0)
KEY = OffsetCommitKey("g", "t", 0)


def commit(offsets: Offsets, offset: int | None, producer: ProducerId = NO_PRODUCER) -> None:
    offsets.apply(KEY, None if offset is None else OffsetCommitValue(offset=offset), producer)


def committed(offsets: Offsets) -> int | None:
    value = offsets.of("g").get(PARTITION)
    return None if value is None else value.offset


def test_a_commit_takes_the_place_of_the_one_before() -> None:
    offsets = Offsets()
    commit(offsets, 1)
    commit(offsets, 2)
    assert committed(offsets) == 2
    assert offsets.groups() == {"g"}
    commit(offsets, None)
    assert offsets == Offsets()


def test_an_offset_in_a_transaction_waits_for_its_end() -> None:
    offsets = Offsets()
    commit(offsets, 1)
    commit(offsets, 5, ONE)
    assert committed(offsets) == 1
    assert offsets.is_pending("g", PARTITION)
    offsets.end_transaction(ONE, committed=True)
    assert committed(offsets) == 5
    assert not offsets.is_pending("g", PARTITION)
    assert offsets.open_transactions == {}


def test_an_aborted_transaction_leaves_nothing() -> None:
    offsets = Offsets()
    commit(offsets, 5, ONE)
    assert offsets.has_group("g")
    offsets.end_transaction(ONE, committed=False)
    assert offsets == Offsets()
    offsets.end_transaction(ONE, committed=True)
    assert offsets == Offsets()


def test_what_is_newer_in_the_log_wins_whenever_a_transaction_ends() -> None:
    offsets = Offsets()
    commit(offsets, 5, ONE)
    commit(offsets, 6)
    offsets.end_transaction(ONE, committed=True)
    assert committed(offsets) == 6
    commit(offsets, 7, ONE)
    commit(offsets, 8, TWO)
    offsets.end_transaction(TWO, committed=True)
    offsets.end_transaction(ONE, committed=True)
    assert committed(offsets) == 8
    commit(offsets, 9, ONE)
    commit(offsets, 10, TWO)
    offsets.end_transaction(ONE, committed=True)
    assert committed(offsets) == 9
    offsets.end_transaction(TWO, committed=True)
    assert committed(offsets) == 10


def test_deleting_an_offset_takes_pending_ones_along() -> None:
    offsets = Offsets()
    commit(offsets, 5, ONE)
    commit(offsets, None)
    offsets.end_transaction(ONE, committed=True)
    assert offsets == Offsets()


PRODUCERS = st.sampled_from([NO_PRODUCER, ONE, TWO])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), PRODUCERS, st.integers(0, 1)),
        st.tuples(st.just("delete"), st.just(NO_PRODUCER), st.integers(0, 1)),
        st.tuples(st.sampled_from(["commit transaction", "abort"]), st.sampled_from([ONE, TWO]), st.just(0)),
    ),
    max_size=30,
)


@given(STEPS)
def test_the_newest_of_what_took_effect_holds(steps: list[tuple[str, ProducerId, int]]) -> None:
    offsets = Offsets()
    log: list[tuple[int, int, ProducerId, int]] = []  # position, partition, producer, offset
    holds: dict[int, tuple[int, int]] = {}  # partition: position, offset
    for position, (step, producer, partition) in enumerate(steps):
        key = OffsetCommitKey("g", "t", partition)
        match step:
            case "commit":
                offsets.apply(key, OffsetCommitValue(offset=position), producer)
                if producer == NO_PRODUCER:
                    holds[partition] = (position, position)
                else:
                    log.append((position, partition, producer, position))
            case "delete":
                offsets.apply(key, None, NO_PRODUCER)
                holds.pop(partition, None)
                log = [each for each in log if each[1] != partition]
            case _:
                offsets.end_transaction(producer, committed=step != "abort")
                for written, where, who, offset in log:
                    if who == producer and step != "abort" and holds.get(where, (-1, 0))[0] < written:
                        holds[where] = (written, offset)
                log = [each for each in log if each[2] != producer]
        expected = {TopicPartition("t", where): offset for where, (_, offset) in holds.items()}
        assert {where: value.offset for where, value in offsets.of("g").items()} == expected
        copy = Offsets()
        for record in offsets.records():
            assert isinstance(record.key, OffsetCommitKey)
            assert isinstance(record.value, OffsetCommitValue)
            copy.apply(record.key, record.value, record.producer_id)
        assert copy == offsets


def test_what_there_is_of_some_topics_is_found_once() -> None:
    offsets = Offsets()
    for group_id, topic, number in (("h", "t", 1), ("g", "t", 2), ("g", "t", 0), ("g", "u", 0), ("h", "v", 0)):
        offsets.apply(OffsetCommitKey(group_id, topic, number), OffsetCommitValue(offset=1), NO_PRODUCER)
    for topic in "tuv":
        offsets.apply(OffsetCommitKey("g", topic, 0), OffsetCommitValue(offset=2), ONE)
    found = offsets.of_topics("g", {"t", "v", "missing"})
    assert list(found) == [TopicPartition("t", 2), TopicPartition("t", 0), TopicPartition("v", 0)]
    assert [each.offset for each in offsets.values("g", TopicPartition("t", 0))] == [1, 2]
    assert [each.offset for each in offsets.values("g", TopicPartition("v", 0))] == [2]
    assert list(offsets.of_topics("h", {"t"})) == [TopicPartition("t", 1)]
    assert list(offsets.of_topics("nobody", {"t"})) == list(offsets.values("nobody", TopicPartition("t", 0))) == []
