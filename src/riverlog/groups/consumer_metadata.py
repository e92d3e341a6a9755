"""What a consumer says about itself in the metadata that it joins a classic group with.

The metadata is the members' own business, and of other protocol types nothing is known. The one thing a coordinator
reads is which topics consumers subscribe to: offsets of those are not deleted and do not expire.
"""

from typing import Final

from riverlog.wire.codec import MalformedMessage, decode
from riverlog.wire.types import STRING, array, int16, record

CONSUMER_PROTOCOL_TYPE: Final = "consumer"


@record(flexible_since=1 << 15)
class Subscription:
    """The beginning of every version of a consumer's metadata; what follows is not needed."""

    version: int = int16()
    topics: tuple[str, ...] = array(STRING, default_factory=tuple)


def subscribed_topics(metadata: bytes) -> frozenset[str] | None:
    """Name the topics that a consumer subscribes to; None if the metadata cannot be read."""
    try:
        subscription, _ = decode(Subscription, 0, metadata)
    except MalformedMessage:
        return None
    return frozenset(subscription.topics)
