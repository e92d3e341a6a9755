"""What members of a classic group tell one another, byte by byte as other clients write it."""

import pytest

from riverlog.wire.codec import MalformedMessage
from riverlog.wire.consumer_protocol import Assignment, Subscription, TopicShare, decode_told, encode_told


def test_a_subscription_is_read_as_it_was_written() -> None:
    told = Subscription(
        topics=("a", "b"),
        user_data=b"x",
        owned_partitions=(TopicShare(topic="a", partitions=(0, 2)),),
        generation_id=7,
        rack_id="r1",
    )
    assert decode_told(Subscription, encode_told(told)) == told


def test_the_first_version_has_topics_and_user_data_only() -> None:
    content = bytes.fromhex("0000 00000001 0001 61 ffffffff".replace(" ", ""))
    assert decode_told(Subscription, content) == Subscription(topics=("a",))


def test_a_version_from_the_future_is_read_as_far_as_it_is_known() -> None:
    told = Assignment(assigned_partitions=(TopicShare(topic="a", partitions=(1,)),))
    content = b"\x00\x09" + encode_told(told)[2:] + b"more"
    assert decode_told(Assignment, content) == told


@pytest.mark.parametrize("content", [b"", b"\x00", b"\xff\xff", b"\x00\x00\x7f\xff\xff\xff"])
def test_other_bytes_are_refused(content: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_told(Subscription, content)
