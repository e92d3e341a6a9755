"""A consumer group is what its records say, in any order that compaction leaves them in."""

from riverlog.groups.consumer.group import (
    LEFT,
    ConsumerGroup,
    ConsumerMember,
    ConsumerMemberState,
    ConsumerPhase,
    target_record,
)
from riverlog.groups.encoding import decode_record, encode_key, encode_value
from riverlog.groups.records import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    CurrentTopicPartitions,
    GroupRecord,
)
from riverlog.groups.state import GroupsState
from tests.support.shapes import topic_id

ORDERS = topic_id("orders")
ALICE = ConsumerGroupMemberMetadataValue(
    instance_id="i-a",
    client_id="alice",
    client_host="/127.0.0.1",
    subscribed_topic_names=("orders",),
    subscribed_topic_regex="pay.*",
    rebalance_timeout_ms=1000,
    server_assignor="range",
)
BOB = ConsumerGroupMemberMetadataValue(
    client_id="bob",
    classic_member_metadata=ClassicMemberMetadata(6000, (ClassicProtocol("range", b"\x00\x01"),)),
)


def metadata(member_id: str, value: ConsumerGroupMemberMetadataValue | None) -> GroupRecord:
    return GroupRecord(ConsumerGroupMemberMetadataKey("g", member_id), value)


def current(member: ConsumerMember | str) -> GroupRecord:
    """Return where a member stands; by its id alone, that it stands nowhere any more."""
    if isinstance(member, str):
        return GroupRecord(ConsumerGroupCurrentMemberAssignmentKey("g", member), None)
    return GroupRecord(ConsumerGroupCurrentMemberAssignmentKey("g", member.id), member.record())


GROUP = [
    metadata("a", ALICE),
    metadata("b", BOB),
    GroupRecord(
        ConsumerGroupRegularExpressionKey("g", "pay.*"), ConsumerGroupRegularExpressionValue(("payments",), 1, 2)
    ),
    GroupRecord(ConsumerGroupMetadataKey("g"), ConsumerGroupMetadataValue(3, -7)),
    GroupRecord(ConsumerGroupTargetAssignmentMemberKey("g", "a"), target_record({ORDERS: frozenset({2, 1})})),
    GroupRecord(ConsumerGroupTargetAssignmentMemberKey("g", "b"), target_record({})),
    GroupRecord(ConsumerGroupTargetAssignmentMetadataKey("g"), ConsumerGroupTargetAssignmentMetadataValue(3, 99)),
    current(ConsumerMember("a", epoch=3, previous_epoch=2, assigned={ORDERS: {1: 2, 2: 3}})),
    current(
        ConsumerMember("b", epoch=2, previous_epoch=2, state=ConsumerMemberState.UNREVOKED, revoking={ORDERS: {0: 1}})
    ),
]


def after(*records: GroupRecord) -> GroupsState:
    state = GroupsState()
    for record in records:
        assert record == decode_record(encode_key(record.key), record.value and encode_value(record.value))
        state.apply(record)
    return state


def test_a_group_is_its_records() -> None:
    state = after(*GROUP)
    group = state.consumers["g"]
    assert (group.epoch, group.metadata_hash, group.target_epoch, group.target_made_ms) == (3, -7, 3, 99)
    assert group.members["a"] == ConsumerMember("a", ALICE, 3, 2, assigned={ORDERS: {1: 2, 2: 3}})
    assert group.target == {"a": {ORDERS: frozenset({1, 2})}, "b": {}}
    assert group.owners == {(ORDERS, 0): "b", (ORDERS, 1): "a", (ORDERS, 2): "a"}
    assert group.static_ids == {"i-a": "a"}
    assert group.behind == {"b"}
    assert after(*state.records()) == state


def test_what_members_subscribe_to_is_known_by_name_and_by_pattern() -> None:
    group = after(*GROUP).consumers["g"]
    assert group.topics_of(ALICE) == group.subscribed_topics() == {"orders", "payments"}
    assert group.topics_of(BOB) == frozenset()
    assert group.reads("payments")
    assert not group.reads("returns")


def test_a_copy_changes_alone() -> None:
    group = after(*GROUP).consumers["g"]
    before = group.copy()
    copy = group.copy()
    for key in list(copy.tombstones()):
        copy.apply(key, None)
    assert copy == ConsumerGroup("g")
    assert group == before


def test_tombstones_leave_nothing() -> None:
    state = after(*GROUP)
    keys = list(state.consumers["g"].tombstones())
    assert {*keys} == {record.key for record in GROUP}
    for key in keys:
        state.apply(GroupRecord(key, None))
    assert state == GroupsState()
    for key in keys:
        state.apply(GroupRecord(key, None))
    assert state == GroupsState()


def test_the_phase_follows_from_epochs_and_members() -> None:
    group = ConsumerGroup("g", epoch=2)
    assert group.phase is ConsumerPhase.EMPTY
    group.apply(ConsumerGroupMemberMetadataKey("g", "a"), ALICE)
    assert group.phase is ConsumerPhase.ASSIGNING
    group.apply(ConsumerGroupTargetAssignmentMetadataKey("g"), ConsumerGroupTargetAssignmentMetadataValue(2, 1))
    assert group.phase is ConsumerPhase.RECONCILING
    group.apply(ConsumerGroupCurrentMemberAssignmentKey("g", "a"), ConsumerMember("a", epoch=2).record())
    assert group.phase is ConsumerPhase.STABLE


def test_a_member_without_a_place_has_left() -> None:
    group = after(*GROUP, current("a")).consumers["g"]
    assert group.members["a"] == ConsumerMember("a", ALICE, LEFT, LEFT)
    assert group.owners == {(ORDERS, 0): "b"}


def test_a_partition_that_compaction_shows_with_two_owners_ends_with_the_last() -> None:
    gave_up_later = [
        current(ConsumerMember("a", epoch=1, assigned={ORDERS: {0: 1}})),
        current(ConsumerMember("b", epoch=3, assigned={ORDERS: {0: 3}})),
        current(ConsumerMember("a", epoch=4)),
    ]
    assert after(*gave_up_later).consumers["g"].owners == {(ORDERS, 0): "b"}


def test_partitions_without_epochs_count_from_the_members_own() -> None:
    written = ConsumerGroupCurrentMemberAssignmentValue(5, 4, 0, (CurrentTopicPartitions(ORDERS, (0, 1), None),))
    group = after(GroupRecord(ConsumerGroupCurrentMemberAssignmentKey("g", "a"), written)).consumers["g"]
    assert group.members["a"].assigned == {ORDERS: {0: 5, 1: 5}}
    assert group.members["a"].owns_since(ORDERS, 1) == 5
    assert group.members["a"].owns_since(ORDERS, 2) is None


def test_a_static_instance_belongs_to_its_latest_member() -> None:
    group = after(*GROUP, metadata("c", ALICE), current("a"), metadata("a", None)).consumers["g"]
    assert group.static_ids == {"i-a": "c"}
    found = group.static_member("i-a")
    assert found is not None
    assert found.id == "c"
    assert group.static_member(None) is None
    assert group.static_member("unknown") is None
