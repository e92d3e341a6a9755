"""A topic in the making: what few partitions have costs the others nothing."""

from uuid import UUID

from riverlog.metadata.draft import after
from riverlog.metadata.image import (
    NOTHING_RARE,
    PARTITIONS_PER_CHUNK,
    LeaderRecoveryState,
    MetadataImage,
    RareState,
    TopicImage,
)
from riverlog.metadata.records import ClearElrRecord, PartitionChangeRecord, PartitionRecord, TopicRecord
from riverlog.metadata.snapshot import snapshot_records
from riverlog.metadata.topic_draft import TopicDraft, rare_state
from riverlog.model.ids import TopicId

TOPIC = TopicId(UUID(int=1))
COUNT = 2 * PARTITIONS_PER_CHUNK
RARE = {
    "adding_replicas": (3,),
    "removing_replicas": (1,),
    "eligible_leader_replicas": (2,),
    "last_known_elr": (1,),
    "leader_recovery_state": 1,
}


def image_of(*changes: PartitionChangeRecord) -> MetadataImage:
    partitions = [
        PartitionRecord(each, TOPIC, (1, 2), (1,), leader=1, leader_epoch=0, partition_epoch=0) for each in range(COUNT)
    ]
    return after(MetadataImage(), [TopicRecord("orders", TOPIC), *partitions, *changes])


def topic_of(image: MetadataImage) -> TopicImage:
    topic = image.topic("orders")
    assert topic is not None
    return topic


def test_a_common_partition_has_no_place_for_rare_things() -> None:
    topic = topic_of(image_of(PartitionChangeRecord(1, TOPIC, isr=(1, 2))))
    assert {len(state) for chunk in topic.chunks for state in chunk} == {6}
    assert topic.partition(1).rare is NOTHING_RARE
    assert not topic.partition(1).is_reassigning


def test_rare_things_come_and_go_and_are_in_snapshots() -> None:
    image = image_of(PartitionChangeRecord(70, TOPIC, **RARE))  # type: ignore[arg-type]  # each has its own type
    partition = topic_of(image).partition(70)
    assert partition.rare == RareState((3,), (1,), (2,), (1,), LeaderRecoveryState.RECOVERING)  # type: ignore[arg-type]
    assert partition.is_reassigning
    assert after(MetadataImage(), snapshot_records(image)) == image
    kept = topic_of(after(image, [PartitionChangeRecord(70, TOPIC, isr=(2,), adding_replicas=())])).partition(70)
    assert kept.rare == partition.rare._replace(adding_replicas=())
    nothing = {"adding_replicas": (), "removing_replicas": (), "eligible_leader_replicas": (), "last_known_elr": ()}
    image = after(image, [PartitionChangeRecord(70, TOPIC, leader_recovery_state=0, **nothing)])
    state = topic_of(image).chunks[1][70 - PARTITIONS_PER_CHUNK]
    assert len(state) == 6
    assert rare_state(state) is NOTHING_RARE


def test_a_change_is_named_with_what_was_before() -> None:
    draft = TopicDraft(topic_of(image_of()))
    before, now = draft.change(PartitionChangeRecord(0, TOPIC, leader=2))
    assert before is not None
    assert (before[2], now[2]) == (1, 2)
    assert draft.put(PartitionRecord(COUNT, TOPIC, (1,), (1,)))[0] is None


def test_eligible_leaders_are_cleared_as_a_change_of_their_partitions() -> None:
    eligible = PartitionChangeRecord(70, TOPIC, eligible_leader_replicas=(2,), last_known_elr=(1,))
    for topic_name in ("", "orders"):
        image = after(image_of(eligible), [ClearElrRecord(topic_name)])
        topic = topic_of(image)
        assert topic.partition(70).rare is NOTHING_RARE
        assert (topic.partition(70).partition_epoch, topic.partition(69).partition_epoch) == (2, 0)
    other = topic_of(after(image_of(eligible), [ClearElrRecord("bills")]))
    assert other.partition(70).rare.eligible_leader_replicas == (2,)
