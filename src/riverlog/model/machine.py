"""The shape of a replicated machine: decide names facts, apply remembers them.

`decide` reads state and changes nothing that is remembered; who waits, and until when, it may note. `apply` is the only
place where remembered state changes, and does the same on every node and on replay. A runner appends the records of a
decision, applies them, and releases replies and effects once the records are committed. No future, callback, clock or
random source ever enters a machine: a reply is data, addressed by the ticket that came with the command.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Generic, NewType, Protocol, TypeVar

Instant = NewType("Instant", float)
"""Seconds on the monotonic clock: for deadlines and waiting, never for timestamps."""

Ticket = NewType("Ticket", int)
"""Which waiting caller a reply belongs to; runners hand them out and never use one twice."""

Record = TypeVar("Record")
Reply_co = TypeVar("Reply_co", covariant=True)
Effect = TypeVar("Effect")


class Command(Generic[Record, Reply_co]):
    """What the machine with these records can be asked; the type of its reply is the second."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Moment:
    """The time of one event, as the runner saw it once: a monotonic instant and the wall clock."""

    instant: Instant
    wall_ms: int


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer to a caller, perhaps to one who asked long before this decision."""

    ticket: Ticket
    response: object


@dataclass(frozen=True, slots=True)
class Decision(Generic[Record, Effect]):
    """What a command came to: facts to write, answers and effects that wait until the facts are committed."""

    records: tuple[Record, ...] = ()
    replies: tuple[Reply, ...] = ()
    effects: tuple[Effect, ...] = ()


class ReplicatedMachine(Protocol[Record, Effect]):
    """A state that lives in a log: the runner feeds commands and replays records."""

    def decide(self, command: Any, ticket: Ticket, now: Moment) -> Decision[Record, Effect]:
        """Name what follows from one of the machine's commands; change nothing that is remembered."""

    def apply(self, record: Record) -> None:
        """Remember one fact; must succeed for every record that `decide` ever produced."""

    def withdraw(self, records: tuple[Record, ...], now: Moment) -> "Decision[Record, Effect]":
        """Forget what else `decide` noted when it named facts that the log will not take.

        Whoever they are about goes on from what is remembered, and who waits there is answered. No facts are named.
        """

    def snapshot(self) -> Iterable[Record]:
        """Return records which, applied to an empty machine, make it equal to this one."""

    def next_deadline(self) -> Instant | None:
        """Return when the machine next wants to be woken, if at all."""
