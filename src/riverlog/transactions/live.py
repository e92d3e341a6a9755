"""The live part of transactions: who waits, and until when. None of it is remembered; all of it may be lost.

Whoever asks for a transactional id whose transaction is ending gets no answer before it has ended, so that most clients
need not ask twice; but it is not kept for long.
"""

from dataclasses import dataclass, field

from riverlog.model.machine import Ticket
from riverlog.model.timers import Timers
from riverlog.transactions.commands import ClientCommand
from riverlog.transactions.decision_draft import DecisionDraft
from riverlog.transactions.limits import TRANSACTION_END_WAIT_MS, WAITING_PER_TRANSACTIONAL_ID_MAX


@dataclass(frozen=True, slots=True)
class TransactionEnds:
    """A transaction that is still open by then is aborted."""

    transactional_id: str


@dataclass(frozen=True, slots=True)
class WaitEnds:
    """Who waits for the end of a transaction until then is told to try again."""

    transactional_id: str


@dataclass(frozen=True, slots=True)
class IdsExpire:
    """It is time to look for transactional ids that nobody uses any more."""


TransactionDeadline = TransactionEnds | WaitEnds | IdsExpire


@dataclass(frozen=True, slots=True)
class Waiting:
    """A command that is decided when the transaction has ended."""

    command: ClientCommand
    ticket: Ticket


@dataclass(slots=True)
class WaitingCommands:
    """Who waits, and until when."""

    timers: Timers[TransactionDeadline] = field(default_factory=Timers)
    waiting: dict[str, list[Waiting]] = field(default_factory=dict)
    expiry_goes_on_at: str = ""
    """The id at which a look for idle ones goes on that one turn did not finish."""

    def wait(self, command: ClientCommand, ticket: Ticket, draft: DecisionDraft) -> bool:
        """Keep a command until its transaction has ended; tell whether there is room for it."""
        waiting = self.waiting.setdefault(command.transactional_id, [])
        if len(waiting) >= WAITING_PER_TRANSACTIONAL_ID_MAX:
            return False
        if not waiting:
            self.timers.set(WaitEnds(command.transactional_id), draft.in_ms(TRANSACTION_END_WAIT_MS))
        waiting.append(Waiting(command, ticket))
        return True

    def release(self, transactional_id: str) -> list[Waiting]:
        """Remove and return those who wait, in the order in which they came."""
        self.timers.cancel(WaitEnds(transactional_id))
        return self.waiting.pop(transactional_id, [])
