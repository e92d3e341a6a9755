"""Who holds a transactional id: whoever took over last, and nobody who was there before."""

from collections.abc import Callable
from dataclasses import dataclass, field

from riverlog.verify.history import History, Moment, Transaction


@dataclass(slots=True)
class _Holder:
    began: Moment
    done: Moment | None = None


@dataclass
class Holders:
    """All who ever took over one id, by name."""

    history: History
    blame: Callable[[str], None]
    _known: dict[str, _Holder] = field(default_factory=dict)

    def starts(self, name: str) -> None:
        """Note that somebody is about to take over."""
        self._known[name] = _Holder(self.history.moment())

    def started(self, name: str) -> None:
        """Note that it has."""
        self._known[name].done = self.history.moment()

    def committed(self, name: str, transaction: Transaction) -> None:
        """Look at a commit that a holder was told is done: nobody may have replaced it before the transaction began."""
        mine = self._known[name].done
        assert mine is not None
        for other, holder in self._known.items():
            if holder.began > mine and holder.done is not None and holder.done < transaction.began:
                self.blame(f"{name} committed {transaction.name}, though {other} had taken over before it began")
