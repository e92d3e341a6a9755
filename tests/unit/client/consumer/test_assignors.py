"""How a leader shares partitions out."""

from riverlog.client.consumer.assignors import COOPERATIVE_STICKY, RANGE, GroupMember, as_shares, from_shares, share_out
from riverlog.model.ids import TopicPartition
from riverlog.wire.consumer_protocol import Subscription


def member(name: str, *topics: str, owned: dict[str, list[int]] | None = None, generation: int = 1) -> GroupMember:
    partitions = [TopicPartition(topic, index) for topic, indexes in (owned or {}).items() for index in indexes]
    return GroupMember(
        name, Subscription(topics=topics, owned_partitions=as_shares(partitions), generation_id=generation)
    )


def numbers(shares: dict[str, list[TopicPartition]]) -> dict[str, list[int]]:
    return {name: [partition.partition for partition in share] for name, share in shares.items()}


def test_range_gives_neighbours_to_one_member() -> None:
    shares = share_out(RANGE, [member("a", "t"), member("b", "t")], {"t": 5})
    assert numbers(shares) == {"a": [0, 1, 2], "b": [3, 4]}


def test_a_partition_that_moves_is_nobodys_until_it_was_let_go() -> None:
    before = [member("a", "t", owned={"t": [0, 1, 2, 3]}), member("b", "t")]
    first = numbers(share_out(COOPERATIVE_STICKY, before, {"t": 4}))
    assert len(first["a"]) == 2
    assert first["b"] == []
    after = [member("a", "t", owned={"t": first["a"]}, generation=2), member("b", "t", generation=2)]
    second = numbers(share_out(COOPERATIVE_STICKY, after, {"t": 4}))
    assert second["a"] == first["a"]
    assert sorted(second["a"] + second["b"]) == [0, 1, 2, 3]


def test_of_two_claims_the_younger_generations_counts() -> None:
    zombie = member("a", "t", owned={"t": [0, 1]}, generation=3)
    owner = member("b", "t", owned={"t": [0, 1]}, generation=4)
    shares = numbers(share_out(COOPERATIVE_STICKY, [zombie, owner], {"t": 2}))
    assert shares["a"] == []
    assert len(shares["b"]) == 1  # the other one moves, once it was let go


def test_topics_that_are_not_there_have_no_partitions() -> None:
    assert share_out(COOPERATIVE_STICKY, [member("a", "t", "gone", owned={"gone": [0]})], {"t": 1}) == {
        "a": [TopicPartition("t", 0)]
    }


def test_shares_name_each_topic_once() -> None:
    partitions = [TopicPartition("b", 1), TopicPartition("a", 3), TopicPartition("b", 0)]
    shares = as_shares(partitions)
    assert [(share.topic, share.partitions) for share in shares] == [("a", (3,)), ("b", (0, 1))]
    assert from_shares(shares) == sorted(partitions)
