"""What a group is to come to."""

import pytest

from riverlog.groups.consumer.group import ConsumerGroup, ConsumerMember
from riverlog.groups.consumer.target import ASSIGNORS, new_target, preferred_assignor
from riverlog.groups.records import ConsumerGroupMemberMetadataValue, ConsumerGroupRegularExpressionValue
from riverlog.model.settings import NodeSettings
from tests.support.shapes import Shapes, topic_id


def member(name: str, *topics: str, regex: str | None = None, assignor: str | None = None) -> ConsumerMember:
    return ConsumerMember(name, ConsumerGroupMemberMetadataValue(None, None, "", "", topics, regex, 1000, assignor))


def group(*members: ConsumerMember, **matched: tuple[str, ...]) -> ConsumerGroup:
    patterns = {pattern: ConsumerGroupRegularExpressionValue(topics) for pattern, topics in matched.items()}
    return ConsumerGroup("g", members={each.id: each for each in members}, patterns=patterns)


def test_topics_by_name_and_by_pattern_are_assigned_if_they_exist() -> None:
    some = group(member("a", "orders", "missing"), member("b", regex="p"), p=("payments",))
    target = new_target(some, Shapes.of(orders=1, payments=2, unrelated=5), "uniform")
    assert target == {"a": {topic_id("orders"): frozenset({0})}, "b": {topic_id("payments"): frozenset({0, 1})}}


def test_members_keep_what_they_were_to_have() -> None:
    some = group(member("a", "orders"), member("b", "orders"))
    some.target = {"b": {topic_id("orders"): frozenset({0, 1})}}
    assert new_target(some, Shapes.of(orders=2), "uniform")["b"] == {topic_id("orders"): frozenset({0})}
    assert new_target(some, Shapes.of(orders=2), "range")["a"] == {topic_id("orders"): frozenset({0})}


@pytest.mark.parametrize(
    ("asked", "chosen"),
    [
        ((None, None), "default"),
        ((None, "range"), "range"),
        (("uniform", "range", "range"), "range"),
        (("uniform", "range"), "range"),
    ],
)
def test_the_majority_chooses_the_assignor(asked: tuple[str | None, ...], chosen: str) -> None:
    some = group(*(member(str(number), assignor=each) for number, each in enumerate(asked)))
    assert preferred_assignor(some, "default") == chosen


def test_every_assignor_that_can_be_set_exists() -> None:
    assert set(NodeSettings().group_consumer_assignors) == ASSIGNORS.keys()
