"""Topics for tests: a name, an id and how many partitions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True)
class Shape:
    name: str
    id: UUID
    partition_count: int


class Shapes:
    """A view of some topics."""

    def __init__(self, *shapes: Shape) -> None:
        self.by_name = {shape.name: shape for shape in shapes}
        self.by_id = {shape.id: shape for shape in shapes}
        self.settings_by_group: dict[str, dict[str, str]] = {}

    @classmethod
    def of(cls, **counts: int) -> "Shapes":
        """Return topics by their names, with ids that follow from their names."""
        return cls(*(Shape(name, topic_id(name), count) for name, count in counts.items()))

    def topic(self, name: str) -> Shape | None:
        return self.by_name.get(name)

    def topic_by_id(self, topic_id: UUID) -> Shape | None:
        return self.by_id.get(topic_id)

    def all_topics(self) -> Iterable[Shape]:
        return self.by_name.values()

    def group_overrides(self, group_id: str) -> Mapping[str, str]:
        return self.settings_by_group.get(group_id, {})


def topic_id(name: str) -> UUID:
    """Return the id that a topic of this name has in tests."""
    return UUID(bytes=name.encode()[:16].ljust(16, b"\0"))
