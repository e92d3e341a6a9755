"""What members of a classic consumer group tell one another: what they read, and what the leader gives each of them.

To the coordinator these are opaque bytes: a version, then the fields of that version. Each version only adds to the one
before it, so that bytes of a version from the future are read as the newest one known here.
"""

from typing import Final, TypeVar

from riverlog.model.ports import Buffer
from riverlog.wire.codec import MalformedMessage, decode, encode_parts, joined
from riverlog.wire.types import INT32, STRING, array, binary, int32, record, string, struct

PROTOCOL_TYPE: Final = "consumer"
_LATEST: Final = 3
_NEVER: Final = 1 << 15
_VERSION_BYTES: Final = 2


@struct
class TopicShare:
    """Some partitions of a topic."""

    topic: str = string()
    partitions: tuple[int, ...] = array(INT32)


@record(flexible_since=_NEVER)
class Subscription:
    """What a member reads, and what it has since which generation."""

    topics: tuple[str, ...] = array(STRING)
    user_data: bytes | None = binary(nullable_since=0)
    owned_partitions: tuple[TopicShare, ...] = array(TopicShare, since=1)
    generation_id: int = int32(since=2, default=-1)
    rack_id: str | None = string(since=3, nullable_since=3)


@record(flexible_since=_NEVER)
class Assignment:
    """What the leader gives to a member."""

    assigned_partitions: tuple[TopicShare, ...] = array(TopicShare)
    user_data: bytes | None = binary(nullable_since=0)


Told = TypeVar("Told", Subscription, Assignment)


def encode_told(told: Subscription | Assignment) -> bytes:
    """Write it behind its version."""
    return joined(encode_parts(told, _LATEST, bytearray(_LATEST.to_bytes(_VERSION_BYTES))))


def decode_told(kind: type[Told], content: Buffer) -> Told:
    """Read what a member or the leader told; MalformedMessage where it is something else."""
    content = memoryview(content)
    version = int.from_bytes(content[:_VERSION_BYTES], signed=True)
    if len(content) < _VERSION_BYTES or version < 0:
        raise MalformedMessage(f"{kind.__name__} has no version")
    return decode(kind, min(version, _LATEST), content, _VERSION_BYTES)[0]
