"""The cluster as a group coordinator sees it, its topics above all: a view that never changes under its holder."""

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Protocol
from uuid import UUID


class Topic(Protocol):
    """A topic and how many partitions it has, numbered from 0."""

    @property
    def name(self) -> str: ...
    @property
    def id(self) -> UUID: ...
    @property
    def partition_count(self) -> int: ...


class Topics(Protocol):
    """All topics, and what was set for groups; the metadata's image is one such view."""

    def topic(self, name: str) -> Topic | None: ...
    def topic_by_id(self, topic_id: UUID) -> Topic | None: ...
    def all_topics(self) -> Iterable[Topic]: ...
    def group_overrides(self, group_id: str) -> Mapping[str, str]: ...


class NoTopics:
    """What is seen of the cluster before anything is."""

    def topic(self, name: str) -> Topic | None:
        return None

    def topic_by_id(self, topic_id: UUID) -> Topic | None:
        return None

    def all_topics(self) -> Iterable[Topic]:
        return ()

    def group_overrides(self, group_id: str) -> Mapping[str, str]:
        return {}


def found(topics: Topics, names: Iterable[str]) -> list[Topic]:
    """Return those of the named topics that exist."""
    return [topic for name in names if (topic := topics.topic(name)) is not None]


def digest(topics: Iterable[Topic]) -> int:
    """Return a number that changes when topics come, go or grow: all that an assignment depends on."""
    described = sorted((topic.id.bytes, topic.partition_count) for topic in topics)
    written = b"".join(topic_id + count.to_bytes(4, "big") for topic_id, count in described)
    return int.from_bytes(blake2b(written, digest_size=8).digest(), "big", signed=True) if written else 0
