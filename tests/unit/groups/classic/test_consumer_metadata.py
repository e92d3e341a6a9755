"""Which topics a consumer subscribes to."""

import pytest

from riverlog.groups.classic.consumer_metadata import (
    by_id,
    must_give_up,
    read_assignment,
    read_subscription,
    subscribed_topics,
    write_assignment,
)
from riverlog.wire.consumer_protocol import Subscription, TopicShare
from tests.support.groups import subscription
from tests.support.shapes import Shapes, topic_id


def test_every_version_begins_with_the_topics() -> None:
    assert subscribed_topics(subscription("a", "b")) == {"a", "b"}
    assert subscribed_topics(b"\x00\x03" + subscription("a")[2:] + b"owned partitions, rack and so on") == {"a"}


@pytest.mark.parametrize(
    "metadata", [b"", b"\x00", b"\x00\x00\x7f\xff\xff\xff", b"\x00\x00\x00\x00\x00\x01\x00\x01\xff"]
)
def test_what_cannot_be_read_is_not_known(metadata: bytes) -> None:
    assert subscribed_topics(metadata) is None


OWNED = "00000001 0001 61 00000002 00000000 00000002"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("0000 00000001 0001 61 ffffffff", Subscription(("a",))),
        (f"0001 00000001 0001 61 00000001 07 {OWNED}", Subscription(("a",), b"\x07", (TopicShare("a", (0, 2)),))),
        (f"0002 00000000 ffffffff {OWNED} 00000005", Subscription((), None, (TopicShare("a", (0, 2)),), 5)),
        ("0003 00000000 ffffffff 00000000 00000005 0001 72", Subscription((), None, (), 5, "r")),
        ("0009 00000000 ffffffff 00000000 00000005 ffff 1234", Subscription((), None, (), 5)),
    ],
)
def test_a_subscription_of_any_version_is_read(written: str, read: Subscription) -> None:
    assert read_subscription(bytes.fromhex(written)) == read


@pytest.mark.parametrize("metadata", [b"", b"\x00", b"\x00\x01\x00", bytes.fromhex("0001 00000000 ffffffff")])
def test_a_subscription_that_cannot_be_read_is_none(metadata: bytes) -> None:
    assert read_subscription(metadata) is None


def test_an_assignment_is_written_in_the_version_of_the_subscription_and_read_again() -> None:
    topics = Shapes.of(orders=3)
    partitions = {topic_id("orders"): frozenset({2, 0}), topic_id("gone"): frozenset({1})}
    written = write_assignment(partitions, topics, b"\x00\x02")
    assert written == bytes.fromhex("0002 00000001 0006 6f7264657273 00000002 00000000 00000002 ffffffff")
    assigned = read_assignment(written)
    assert assigned is not None
    assert by_id(assigned.assigned_partitions, topics) == {topic_id("orders"): frozenset({0, 2})}
    assert by_id((TopicShare("orders"), TopicShare("gone", (1,))), topics) == {}
    assert read_assignment(b"") is not None
    assert read_assignment(b"\x00\x00\x00") is None


@pytest.mark.parametrize(
    ("assigned", "gives_up"),
    [
        ("00000001 0001 61 00000002 00000000 00000002", False),
        ("00000001 0001 61 00000003 00000002 00000001 00000000", False),
        ("00000001 0001 61 00000001 00000002", True),
        ("00000001 0001 62 00000002 00000000 00000002", True),
        ("00000000", True),
        ("7fffffff", False),
    ],
)
def test_who_has_what_it_is_not_assigned_must_give_it_up(assigned: str, gives_up: bool) -> None:
    owner = bytes.fromhex(f"0001 00000001 0001 61 ffffffff {OWNED}")
    assert must_give_up(owner, bytes.fromhex(f"0001 {assigned} ffffffff")) is gives_up
    assert not must_give_up(subscription("a"), bytes.fromhex(f"0001 {assigned} ffffffff"))
    assert not must_give_up(b"", b"")
