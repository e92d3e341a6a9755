"""What the coordinator remembers is what its records say."""

from riverlog.groups.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    GroupRecord,
    OffsetCommitKey,
    OffsetCommitValue,
    TransactionMarker,
)
from riverlog.groups.state import GroupsState
from riverlog.model.ids import ProducerEpoch, ProducerId, TopicPartition

GROUP = GroupRecord(GroupMetadataKey("g"), GroupMetadataValue(protocol_type="consumer", generation=2))
OFFSET = GroupRecord(OffsetCommitKey("g", "t", 0), OffsetCommitValue(offset=7))
PENDING = GroupRecord(OffsetCommitKey("h", "t", 0), OffsetCommitValue(offset=8), ProducerId(1), ProducerEpoch(0))


def test_a_state_is_its_records() -> None:
    state = GroupsState()
    for fact in (GROUP, OFFSET, PENDING):
        state.apply(fact)
    copy = GroupsState()
    for record in state.records():
        copy.apply(record)
    assert copy == state
    assert copy.classic == {"g": GROUP.value}


def test_a_tombstone_forgets() -> None:
    state = GroupsState()
    for fact in (GROUP, OFFSET, GroupRecord(GROUP.key, None), GroupRecord(OFFSET.key, None)):
        state.apply(fact)
    assert state == GroupsState()
    state.apply(GroupRecord(GROUP.key, None))
    assert state == GroupsState()


def test_a_marker_ends_a_transaction() -> None:
    state = GroupsState()
    state.apply(PENDING)
    state.apply(TransactionMarker(ProducerId(1), ProducerEpoch(0), committed=True))
    assert state.offsets.of("h") == {TopicPartition("t", 0): PENDING.value}
