"""The runner of a replicated machine: any machine, on any log.

    submit -> decide -> append -> apply ............ committed -> effects and replies

Between `submit` and `apply` nothing else runs, so commands are decided one after the other, each on the state that
those before it left. Replies and effects wait, in order, until the log has committed the records that they rest on;
a reply that wrote nothing waits for the records before it, since it may speak of them. If the log fails, whoever
waits is told, and so is the owner, who replays the machine or gives it up: nothing is rolled back by hand. If the log
takes everything but one decision (`Unwritable`), only those are told whom that was to answer, and the machine goes on.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from riverlog.model.errors import Refusal
from riverlog.model.limits import COMMANDS_IN_FLIGHT_MAX, RECORDS_REPLAYED_PER_TURN
from riverlog.model.machine import Command, Decision, Instant, Moment, ReplicatedMachine, Ticket
from riverlog.model.ports import Clock
from riverlog.observe.containment import contained

Machine = TypeVar("Machine", bound=ReplicatedMachine[Any, Any])
Record = TypeVar("Record")
Effect = TypeVar("Effect")
Reply = TypeVar("Reply")


class RecordLog(Protocol[Record]):
    """The log under a machine: a local one, a Raft group, or a partition of an internal topic."""

    def append(self, records: Sequence[Record]) -> "asyncio.Future[None] | None":
        """Take the records now, in this order; the future ends once they are committed. None where they are already,
        and all before them.

        Unwritable, from the call alone, means that these cannot be written, and others can. Any other Refusal, from the
        call or the future, means that neither these nor any later ones were written, and that the log can go on; any
        other exception means that it cannot.
        """
        ...

    def replay(self) -> Iterator[Record]:
        """Read every committed record from the beginning, or those that stand for it."""
        ...


class Unwritable(Refusal):
    """The log does not take what one decision is to write: it is too large, or has no bytes at all."""


class Stopped(Exception):
    """The log under the machine has failed; nothing is decided until it is replayed."""


@dataclass(slots=True)
class _Undelivered(Generic[Record, Effect]):
    """A decision whose records are on their way."""

    decision: Decision[Record, Effect]
    view: object


class Runner(Generic[Machine, Record, Effect]):
    """Runs one machine. `view` is taken after each decision, `committed` called with it once it holds.

    `failed` is called when the log has failed; it may `start` or `load` the machine again.
    """

    def __init__(
        self,
        *,
        new_machine: Callable[[], Machine],
        log: RecordLog[Record],
        clock: Clock,
        view: Callable[[Machine], Any],
        committed: Callable[[Any, tuple[Record, ...], tuple[Effect, ...]], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._new_machine = new_machine
        self._log = log
        self._clock = clock
        self._view = view
        self._committed = committed
        self._failed = failed
        self._machine = new_machine()
        self._last_ticket = Ticket(0)
        self._refused_upto = Ticket(0)
        """No later ticket was refused: each is answered by the machine, and once."""
        self._waiting: dict[Ticket, asyncio.Future[Any]] = {}
        self._undelivered: deque[_Undelivered[Record, Effect]] = deque()
        self._under_way: set[asyncio.Future[None]] = set()
        self._incarnation = 0  # grows when the log fails: what was under way then is void
        self._failure: Exception | None = None

    @property
    def machine(self) -> Machine:
        """Return the machine, for those who look and change nothing; it may be ahead of what is committed."""
        return self._machine

    @property
    def settled(self) -> bool:
        """Return whether all that was decided is committed."""
        return not self._undelivered

    @property
    def crowded(self) -> bool:
        """Return whether as many wait for replies as may."""
        return len(self._waiting) >= COMMANDS_IN_FLIGHT_MAX

    def start(self) -> None:
        """Load the machine from its log."""
        self._begin(self.replayed())

    async def load(self) -> None:
        """Load the machine from its log, a piece at a time, so that others get their turn; nothing is submitted
        meanwhile."""
        await self.drain()  # what is on its way to the log is to be found there
        machine = self._new_machine()
        for position, record in enumerate(self._log.replay(), 1):
            try:
                machine.apply(record)
            except Exception as error:  # one fact that makes no sense must not keep all others away for ever
                contained(f"fact {type(record).__name__} left out", error)
            if position % RECORDS_REPLAYED_PER_TURN == 0:
                await asyncio.sleep(0)
        self._begin(machine)

    def replayed(self) -> Machine:
        """Build a machine that remembers what the log says."""
        machine = self._new_machine()
        for record in self._log.replay():
            machine.apply(record)
        return machine

    def submit(self, command: Command[Record, Reply]) -> "asyncio.Future[Reply]":
        """Decide now; the future ends with the machine's reply once it rests on committed records, or raises."""
        if self._failure is not None:
            raise Stopped(str(self._failure)) from self._failure
        assert len(self._waiting) < 2 * COMMANDS_IN_FLIGHT_MAX
        ticket = self._last_ticket = Ticket(self._last_ticket + 1)
        reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting[ticket] = reply
        try:
            decision = self._machine.decide(command, ticket, self._now())
        except Exception:  # nothing was written: this command alone has failed
            del self._waiting[ticket]
            self._refused_upto = ticket
            raise
        self._carry_out(decision)
        return reply

    async def drain(self) -> None:
        """Wait until all that was decided is committed or has failed."""
        while self._under_way:
            await asyncio.wait(self._under_way)

    def dismiss(self, error: Exception) -> None:
        """Refuse those who wait for somebody else's command, which will not come; who waits for the log still does."""
        on_their_way = {reply.ticket for decided in self._undelivered for reply in decided.decision.replies}
        self._refuse([ticket for ticket in self._waiting if ticket not in on_their_way], error)

    def drop(self, error: Exception) -> None:
        """Forget what was decided but not committed, and tell all who wait, and the owner."""
        self._incarnation += 1
        self._undelivered.clear()
        self._failure = error
        self._refuse(list(self._waiting), error)
        self._failed(error)

    def _begin(self, machine: Machine) -> None:
        self._machine = machine
        self._failure = None

    def _carry_out(self, decision: Decision[Record, Effect]) -> None:
        try:
            under_way = self._log.append(decision.records) if decision.records else None
        except Unwritable as refusal:
            self._withdraw(decision, refusal)
            return
        except Exception as error:
            self.drop(error)
            return
        try:
            for record in decision.records:
                self._machine.apply(record)
            view = self._view(self._machine)
        except Exception as mistake:  # the machine is not what its log says any more
            self.drop(mistake)
            return
        if under_way is None and not self._undelivered:
            self._deliver(decision, view)
            return
        decided = _Undelivered(decision, view)
        self._undelivered.append(decided)
        if not decision.records:
            return
        if under_way is None:  # those before it have yet to hear of it
            under_way = asyncio.get_running_loop().create_future()
            under_way.set_result(None)
        self._under_way.add(under_way)
        under_way.add_done_callback(partial(self._settle, decided, self._incarnation))

    def _withdraw(self, decision: Decision[Record, Effect], refusal: Unwritable) -> None:
        """Refuse what was decided, and let the machine go on without it."""
        self._refuse([reply.ticket for reply in decision.replies if reply.ticket in self._waiting], refusal)
        try:
            instead = self._machine.withdraw(decision.records, self._now())
        except Exception as mistake:
            self.drop(mistake)
            return
        assert not instead.records, "what cannot be written is replaced by nothing that has to be"
        self._carry_out(instead)

    def _now(self) -> Moment:
        return Moment(Instant(self._clock.monotonic()), self._clock.wall_ms())

    def _settle(
        self, decided: _Undelivered[Record, Effect], incarnation: int, committed: "asyncio.Future[None]"
    ) -> None:
        self._under_way.discard(committed)
        error = committed.exception()
        if incarnation != self._incarnation:
            return
        if error is not None:
            assert isinstance(error, Exception)
            self.drop(error)
            return
        assert self._undelivered[0] is decided, "a log commits in the order in which it was appended to"
        self._deliver_next()
        while self._undelivered and not self._undelivered[0].decision.records:
            self._deliver_next()

    def _deliver_next(self) -> None:
        done = self._undelivered.popleft()
        self._deliver(done.decision, done.view)

    def _deliver(self, decision: Decision[Record, Effect], view: object) -> None:
        if decision.records or decision.effects:
            try:
                self._committed(view, decision.records, decision.effects)
            except Exception as error:  # those who asked are answered all the same: their records stand
                contained("effects of a decision", error)
        for reply in decision.replies:
            waiting = self._waiting.pop(reply.ticket, None)
            if waiting is None:
                assert reply.ticket <= self._refused_upto, "nobody is answered twice"
            elif not waiting.done():
                waiting.set_result(reply.response)

    def _refuse(self, tickets: list[Ticket], error: Exception) -> None:
        for ticket in tickets:
            self._refused_upto = max(self._refused_upto, ticket)
            future = self._waiting.pop(ticket)
            if not future.done():
                future.set_exception(error)
                future.exception()  # a caller that has gone away is no reason for a warning
