"""What a transactional id remembers of the batches that its members share: which are committed, and which is open.

A batch has a number within an incarnation of its pipeline; one that begins from nothing is another incarnation, and its
batch 0 another batch. Several incarnations are remembered, so that one that comes back repeats nothing.
"""

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from riverlog.model.limits import INCARNATIONS_REMEMBERED_MAX
from riverlog.model.transactions import NOTHING_FOLLOWS

NO_BATCH: Final = -1


class BatchName(NamedTuple):
    """One batch of a pipeline."""

    incarnation: str
    number: int


@dataclass(frozen=True, slots=True)
class Incarnation:
    """How far one incarnation has come."""

    name: str
    committed: int = NO_BATCH
    """The last batch that is committed; those before it are done as well."""
    opened: int = NO_BATCH
    """The last batch that its present owner began, or that was committed."""
    marker: bytes = b""
    """What the owner left with the last committed batch."""

    def may_follow(self, number: int) -> bool:
        """Return whether a batch may be the next: one that was begun is committed before any other."""
        return self.opened <= self.committed or number == self.opened


@dataclass(frozen=True, slots=True)
class Shared:
    """All incarnations of one transactional id, the one that was used last at the end."""

    incarnations: tuple[Incarnation, ...] = ()
    is_open: bool = False
    """Whether the last one's `opened` is not decided yet."""

    @property
    def open_batch(self) -> BatchName | None:
        if not self.is_open:
            return None
        last = self.incarnations[-1]
        return BatchName(last.name, last.opened)

    @property
    def is_done(self) -> bool:
        """Return whether nothing follows, as the owner has said of each incarnation."""
        return bool(self.incarnations) and all(
            each.marker == NOTHING_FOLLOWS and each.opened == each.committed for each in self.incarnations
        )

    def find(self, name: str) -> Incarnation:
        """Return what is known of an incarnation; of one that nobody has heard of, nothing."""
        return next((each for each in self.incarnations if each.name == name), Incarnation(name))

    def opened(self, batch: BatchName) -> "Shared":
        """Begin a batch."""
        assert not self.is_open
        return self._with(replace(self.find(batch.incarnation), opened=batch.number), is_open=True)

    def committed(self, batch: BatchName, marker: bytes) -> "Shared":
        """Note that a batch is committed, whether anybody joined it or not."""
        known = self.find(batch.incarnation)
        assert batch.number > known.committed
        return self._with(replace(known, committed=batch.number, opened=batch.number, marker=marker), is_open=False)

    def aborted(self) -> "Shared":
        """Note that the open batch was aborted: it may be begun again."""
        return replace(self, is_open=False)

    def renewed(self) -> "Shared":
        """Return it for another owner, who begins behind what is committed."""
        assert not self.is_open
        return replace(self, incarnations=tuple(replace(each, opened=each.committed) for each in self.incarnations))

    def _with(self, incarnation: Incarnation, *, is_open: bool) -> "Shared":
        others = tuple(each for each in self.incarnations if each.name != incarnation.name)
        return Shared((*others, incarnation)[-INCARNATIONS_REMEMBERED_MAX:], is_open)
