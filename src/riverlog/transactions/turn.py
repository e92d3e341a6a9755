"""One turn of the machine: when it is, and what has come of it so far."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from riverlog.model.machine import Decision, Instant, Moment, Reply, Ticket
from riverlog.transactions.commands import SendMarkers
from riverlog.transactions.records import TransactionFact
from riverlog.transactions.states import Transaction


@dataclass(slots=True)
class Turn:
    """A decision in the making; whoever takes part in it adds facts, answers and what is to be done."""

    now: Moment
    remembered: Mapping[str, Transaction]
    facts: list[TransactionFact] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    effects: list[SendMarkers] = field(default_factory=list)
    drafts: dict[str, Transaction | None] = field(default_factory=dict)
    """What the facts so far make of transactional ids."""

    def find(self, transactional_id: str) -> Transaction | None:
        """Give what holds for an id, as the facts of this turn make it."""
        if transactional_id in self.drafts:
            return self.drafts[transactional_id]
        return self.remembered.get(transactional_id)

    def write(self, transactional_id: str, transaction: Transaction | None) -> None:
        """Add a fact, and send out the markers where it ends a transaction."""
        self.facts.append(TransactionFact(transactional_id, transaction))
        self.drafts[transactional_id] = transaction
        if transaction is not None and transaction.state.is_ending:
            self.send_markers(transactional_id, transaction)

    def send_markers(self, transactional_id: str, transaction: Transaction) -> None:
        """Tell the partitions how the transaction ended."""
        self.effects.append(
            SendMarkers(
                transactional_id,
                transaction.producer,
                transaction.is_committed,
                tuple(sorted(transaction.partitions)),
                transaction.version,
            )
        )

    def answer(self, ticket: Ticket, response: object) -> None:
        """Answer this turn's caller, or one who has waited since an earlier turn."""
        self.replies.append(Reply(ticket, response))

    def in_ms(self, delay_ms: int) -> Instant:
        """Give the instant so many milliseconds from now."""
        return Instant(self.now.instant + delay_ms / 1000)

    def decision(self) -> Decision[TransactionFact, SendMarkers]:
        return Decision(records=tuple(self.facts), replies=tuple(self.replies), effects=tuple(self.effects))
