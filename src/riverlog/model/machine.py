"""The shape of a replicated machine: decide names facts, apply remembers them.

`decide` reads state and changes nothing. `apply` is the only place where remembered state changes, and does
the same on every node and on replay. A driver appends the records of a decision, applies them, and releases
replies and effects once the records are committed. No future, callback, clock or random source ever enters
a machine: a reply is data, addressed by the ticket that came with the command.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, NewType, Protocol, TypeVar

Instant = NewType("Instant", float)
"""Seconds on the monotonic clock: for deadlines and waiting, never for timestamps."""

Ticket = NewType("Ticket", int)
"""Which waiting caller a reply belongs to; drivers hand them out and never use one twice."""

Command_contra = TypeVar("Command_contra", contravariant=True)
Record = TypeVar("Record")
Effect = TypeVar("Effect")


@dataclass(frozen=True, slots=True)
class Moment:
    """The time of one event, as the driver saw it once: a monotonic instant and the wall clock."""

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


class ReplicatedMachine(Protocol[Command_contra, Record, Effect]):
    """A state that lives in a log: the driver feeds commands and replays records."""

    def decide(self, command: Command_contra, ticket: Ticket, now: Moment) -> Decision[Record, Effect]:
        """Read the state and say what follows from the command; change nothing."""
        ...

    def apply(self, record: Record) -> None:
        """Remember one fact; must succeed for every record that `decide` ever produced."""
        ...

    def withdraw(self, records: tuple[Record, ...], now: Moment) -> "Decision[Record, Effect]":
        """Forget what else `decide` noted when it named facts that the log will not take.

        Whoever they are about goes on from what is remembered, and who waits there is answered. No facts are named.
        """
        ...

    def snapshot(self) -> Iterable[Record]:
        """Give records which, applied to an empty machine, make it equal to this one."""
        ...

    def next_deadline(self) -> Instant | None:
        """Say when the machine next wants to be woken, if at all."""
        ...
