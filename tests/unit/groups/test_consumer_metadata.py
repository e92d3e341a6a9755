"""Which topics a consumer subscribes to."""

import pytest

from riverlog.groups.consumer_metadata import subscribed_topics
from tests.support.groups import subscription


def test_every_version_begins_with_the_topics() -> None:
    assert subscribed_topics(subscription("a", "b")) == {"a", "b"}
    assert subscribed_topics(b"\x00\x03" + subscription("a")[2:] + b"owned partitions, rack and so on") == {"a"}


@pytest.mark.parametrize(
    "metadata", [b"", b"\x00", b"\x00\x00\x7f\xff\xff\xff", b"\x00\x00\x00\x00\x00\x01\x00\x01\xff"]
)
def test_what_cannot_be_read_is_not_known(metadata: bytes) -> None:
    assert subscribed_topics(metadata) is None
