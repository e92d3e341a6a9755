"""The lineage of a stream: the topics that it begins with, its steps, and the streams that join it. Pure."""

from dataclasses import dataclass
from typing import NamedTuple


class LineageStep(NamedTuple):
    """Something that was done, in words; with another stream, where it brings two together."""

    words: str
    beside: "Lineage | None" = None


@dataclass(frozen=True, slots=True)
class Lineage:
    """Where a stream comes from."""

    begins: tuple[str, ...] = ()
    """Topics; none for rows that come from elsewhere."""
    steps: tuple[LineageStep, ...] = ()

    def after(self, words: str, beside: "Lineage | None" = None) -> "Lineage":
        """Return the lineage behind one more step."""
        return Lineage(self.begins, (*self.steps, LineageStep(words, beside)))

    @property
    def topics(self) -> tuple[str, ...]:
        """All topics that it comes from, each once."""
        found = dict.fromkeys(self.begins)
        for step in self.steps:
            found |= dict.fromkeys(() if step.beside is None else step.beside.topics)
        return tuple(found)
