"""What an assignor sees of a group, and what it answers: the nouns that all assignors share.

An assignor gives every partition of every subscribed topic to exactly one of the topic's subscribers, and gives the
same answer to the same question whatever the order of the members: the members of a group may ask again and again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

Partitions = Mapping[UUID, frozenset[int]]
"""Partitions by the id of their topic; a topic that is named has at least one."""

NO_PARTITIONS: Final[Partitions] = {}


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A member as an assignor sees it: the topics it reads, and what it was given last time."""

    member_id: str
    topics: frozenset[UUID]
    assigned: Partitions
    instance_id: str | None = None


Assignor = Callable[[Sequence[Subscriber], Mapping[UUID, int]], dict[str, Partitions]]
"""From the members and the partition count of each subscribed topic to the partitions of every member."""
