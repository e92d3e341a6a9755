"""One turn of the machine: when it is, and what has come of it so far."""

from dataclasses import dataclass, field
from typing import Never

from riverlog.groups.consumer.draft import Draft
from riverlog.groups.records import GroupFact, GroupRecord, Key, Value
from riverlog.model.machine import Decision, Instant, Moment, Reply, Ticket


@dataclass(slots=True)
class Turn:
    """A decision in the making; whoever takes part in it adds facts and answers."""

    now: Moment
    facts: list[GroupFact] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    forgotten_bytes: int = 0
    """Bytes of the names of groups whose offsets are forgotten."""
    drafts: dict[str, Draft] = field(default_factory=dict)
    """Consumer groups as the facts so far make them; several deadlines of one group may come in one turn."""

    def write(self, key: Key, value: Value | None) -> None:
        """Add a fact; None says that nothing holds for the key any more."""
        self.facts.append(GroupRecord(key, value))

    def answer(self, ticket: Ticket, response: object) -> None:
        """Answer this turn's caller, or one who has waited since an earlier turn."""
        self.replies.append(Reply(ticket, response))

    def in_ms(self, delay_ms: int) -> Instant:
        """Give the instant so many milliseconds from now."""
        return Instant(self.now.instant + delay_ms / 1000)

    def decision(self) -> Decision[GroupFact, Never]:
        return Decision(records=tuple(self.facts), replies=tuple(self.replies))
