"""The runner of a replicated machine: order, commitment, and what happens when the log fails."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.limits import RECORDS_REPLAYED_PER_TURN
from riverlog.model.machine import Command, Decision, Instant, Moment, Reply, Ticket
from riverlog.runner import Runner, Stopped, Unwritable

LARGEST = 1_000_000


@dataclass(frozen=True)
class Add(Command[int, int]):
    amount: int


@dataclass(frozen=True)
class Look(Command[int, int]):
    pass


@dataclass(frozen=True)
class Park(Command[int, str]):
    pass


class Counter:
    """The smallest machine: a sum. Looking at it writes nothing; who parks is never answered."""

    def __init__(self) -> None:
        self.total = 0
        self.parked: list[Ticket] = []
        self.withdrawn: list[int] = []

    def decide(self, command: Add | Look | Park, ticket: Ticket, now: Moment) -> Decision[int, str]:
        match command:
            case Add(amount):
                return Decision((amount,), (Reply(ticket, self.total + amount),), (f"added {amount}",))
            case Look():
                return Decision((), (Reply(ticket, self.total),))
            case Park():
                self.parked.append(ticket)
                return Decision()

    def apply(self, record: int) -> None:
        self.total += record

    def withdraw(self, records: tuple[int, ...], now: Moment) -> Decision[int, str]:
        self.withdrawn += records
        return Decision((), tuple(Reply(ticket, "go on") for ticket in self.parked))

    def snapshot(self) -> Iterator[int]:
        yield self.total

    def next_deadline(self) -> Instant | None:
        return None


class HandLog:
    """A log whose commits and failures the test decides."""

    def __init__(self) -> None:
        self.committed: list[int] = []
        self.under_way: list[tuple[Sequence[int], asyncio.Future[None]]] = []
        self.refuse_next = False
        self.commits_at_once = False

    def append(self, records: Sequence[int]) -> "asyncio.Future[None] | None":
        if sum(records) > LARGEST:
            raise Unwritable(ErrorCode.UNKNOWN_SERVER_ERROR, "too large")
        if self.refuse_next:
            raise Refusal(ErrorCode.KAFKA_STORAGE_ERROR, "no room")
        if self.commits_at_once:
            while self.under_way:
                self.commit()
            self.committed += records
            return None
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.under_way.append((records, future))
        return future

    def replay(self) -> Iterator[int]:
        return iter(self.committed)

    def commit(self) -> None:
        records, future = self.under_way.pop(0)
        self.committed += records
        future.set_result(None)

    def fail(self, error: Exception) -> None:
        failed, self.under_way = self.under_way, []
        for _, future in failed:
            future.set_exception(error)


class StillClock:
    def monotonic(self) -> float:
        return 1.0

    def wall_ms(self) -> int:
        return 1000


class Bench:
    def __init__(self, new_machine: type[Counter] = Counter) -> None:
        self.log = HandLog()
        self.published: list[tuple[int, tuple[int, ...], tuple[str, ...]]] = []
        self.failures: list[Exception] = []
        self.runner: Runner[Counter, int, str] = Runner(
            new_machine=new_machine,
            log=self.log,
            clock=StillClock(),
            view=lambda machine: machine.total,
            committed=lambda view, records, effects: self.published.append((view, records, effects)),
            failed=self.failures.append,
        )
        self.runner.start()


async def turn() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def run(test):
    """Run an async test on a loop of its own."""

    def wrapped():
        asyncio.run(test())

    wrapped.__name__ = test.__name__
    return wrapped


@run
async def test_a_reply_waits_for_its_records_and_the_next_command_does_not():
    bench = Bench()
    first = bench.runner.submit(Add(1))
    second = bench.runner.submit(Add(2))
    await turn()
    assert not first.done()
    bench.log.commit()
    await turn()
    assert first.result() == 1
    assert not second.done()
    assert bench.published == [(1, (1,), ("added 1",))]
    bench.log.commit()
    await turn()
    assert second.result() == 3


@run
async def test_what_is_published_is_not_ahead_of_what_is_committed():
    bench = Bench()
    bench.runner.submit(Add(1))
    bench.runner.submit(Add(10))
    bench.log.commit()
    await turn()
    assert [view for view, _, _ in bench.published] == [1]
    assert not bench.runner.settled


@run
async def test_a_reply_that_wrote_nothing_waits_for_what_it_may_speak_of():
    bench = Bench()
    bench.runner.submit(Add(5))
    look = bench.runner.submit(Look())
    await turn()
    assert not look.done()
    bench.log.commit()
    await turn()
    assert look.result() == 5
    assert (await bench.runner.submit(Look())) == 5


@run
async def test_a_refused_append_tells_all_who_wait_and_forgets_what_was_decided():
    bench = Bench()
    bench.runner.submit(Add(1))
    bench.log.commit()
    await turn()
    lost = bench.runner.submit(Add(100))
    also_lost = bench.runner.submit(Look())
    bench.log.fail(Refusal(ErrorCode.KAFKA_STORAGE_ERROR, "no room"))
    await turn()
    for each in (lost, also_lost):
        with pytest.raises(Refusal, match="no room"):
            each.result()
    assert len(bench.failures) == 1
    with pytest.raises(Stopped):
        bench.runner.submit(Look())
    bench.runner.start()
    assert await bench.runner.submit(Look()) == 1
    again = bench.runner.submit(Add(2))
    bench.log.commit()
    assert await again == 3


@run
async def test_an_append_that_is_refused_at_once_is_no_different():
    bench = Bench()
    bench.log.refuse_next = True
    with pytest.raises(Refusal):
        await bench.runner.submit(Add(1))
    bench.log.refuse_next = False
    await bench.runner.load()
    assert await bench.runner.submit(Look()) == 0


@run
async def test_the_owner_is_told_of_a_log_that_failed():
    bench = Bench()
    lost = bench.runner.submit(Add(1))
    bench.log.fail(OSError(5, "the medium is gone"))
    await turn()
    with pytest.raises(OSError, match="gone"):
        lost.result()
    assert len(bench.failures) == 1
    with pytest.raises(Stopped):
        bench.runner.submit(Look())


@run
async def test_a_caller_that_has_gone_away_does_not_disturb_the_others():
    bench = Bench()
    gone = bench.runner.submit(Add(1))
    gone.cancel()
    stays = bench.runner.submit(Add(2))
    bench.log.commit()
    bench.log.commit()
    assert await stays == 3


@run
async def test_starting_replays_the_log():
    bench = Bench()
    bench.log.committed = [4, 5]
    bench.runner.start()
    assert await bench.runner.submit(Look()) == 9


@run
async def test_drain_waits_for_all_that_was_decided():
    bench = Bench()
    reply = bench.runner.submit(Add(1))
    drained = asyncio.ensure_future(bench.runner.drain())
    await turn()
    assert not drained.done()
    bench.log.commit()
    await drained
    assert reply.done()


@run
async def test_what_is_committed_at_once_is_answered_at_once():
    bench = Bench()
    bench.log.commits_at_once = True
    assert bench.runner.submit(Add(1)).result() == 1
    assert bench.published == [(1, (1,), ("added 1",))]
    bench.log.commits_at_once = False
    waits = bench.runner.submit(Add(1))
    bench.log.commits_at_once = True
    behind = bench.runner.submit(Add(1))
    assert not behind.done()
    assert (await waits, await behind) == (2, 3)


@run
async def test_loading_lets_others_run():
    bench = Bench()
    bench.log.committed = [1] * (RECORDS_REPLAYED_PER_TURN * 3)
    loading = asyncio.ensure_future(bench.runner.load())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not loading.done()
    await loading
    assert await bench.runner.submit(Look()) == RECORDS_REPLAYED_PER_TURN * 3


@run
async def test_who_waits_for_others_is_dismissed_and_who_waits_for_the_log_is_not():
    bench = Bench()
    parked = bench.runner.submit(Park())
    written = bench.runner.submit(Add(1))
    bench.runner.dismiss(Refusal(ErrorCode.NOT_COORDINATOR, "the node stops"))
    with pytest.raises(Refusal, match="stops"):
        await parked
    bench.log.commit()
    assert await written == 1


@run
async def test_what_the_log_does_not_take_is_refused_alone():
    bench = Bench()
    before = bench.runner.submit(Add(1))
    parked = bench.runner.submit(Park())
    too_large = bench.runner.submit(Add(LARGEST + 1))
    after = bench.runner.submit(Add(2))
    with pytest.raises(Unwritable):
        await too_large
    assert not before.done()
    bench.log.commit()
    bench.log.commit()
    await turn()
    assert (before.result(), parked.result(), after.result()) == (1, "go on", 3)
    assert bench.runner.machine.withdrawn == [LARGEST + 1]
    assert bench.failures == []


@run
async def test_nobody_is_answered_twice():
    class Hasty(Counter):
        def decide(self, command: Add | Look | Park, ticket: Ticket, now: Moment) -> Decision[int, str]:
            return Decision((), (Reply(ticket, 1), Reply(ticket, 2)))

    bench = Bench(Hasty)
    with pytest.raises(AssertionError):
        bench.runner.submit(Look())


@run
async def test_who_was_refused_may_be_answered_in_vain():
    class Late(Counter):
        def decide(self, command: Add | Look | Park, ticket: Ticket, now: Moment) -> Decision[int, str]:
            if isinstance(command, Look):
                return Decision((), (*(Reply(each, "late") for each in self.parked), Reply(ticket, self.total)))
            return super().decide(command, ticket, now)

    bench = Bench(Late)
    parked = bench.runner.submit(Park())
    bench.runner.dismiss(Refusal(ErrorCode.NOT_COORDINATOR, "the node stops"))
    assert await bench.runner.submit(Look()) == 0
    with pytest.raises(Refusal, match="stops"):
        await parked


@run
async def test_a_replayed_machine_is_what_the_log_says():
    bench = Bench()
    bench.runner.submit(Add(1))
    bench.log.commit()
    bench.runner.submit(Add(5))
    assert (bench.runner.replayed().total, bench.runner.machine.total) == (1, 6)
