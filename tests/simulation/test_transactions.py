"""A short simulation with transactions; the long one is `make sim ONLY=transactions`."""

import asyncio

import pytest

from riverlog.verify.history import History
from tests.simulation.holders import Holders
from tests.simulation.lifelines import Lifeline
from tests.simulation.machine import ADDRESS, Machine
from tests.simulation.plan import Plan, PowerLoss, Step
from tests.simulation.run import simulate
from tests.simulation.transaction_acts import DriverStarts, TakeOver, Transact
from tests.simulation.transaction_plan import draw_transactions
from tests.support.virtual_time import run

SETTINGS = {"durability": "fsync"}


@pytest.mark.parametrize("seed", range(4))
def test_transactions_are_kept_whole(seed: int) -> None:
    outcome = simulate(draw_transactions(seed, steps=40))
    assert outcome.violations == []
    assert outcome.counts["committed"] > 0
    assert outcome.counts["lives"] > 1
    assert outcome.counts["shown"] > 0


def test_a_run_is_determined_by_its_seed() -> None:
    first, again = (simulate(draw_transactions(1, steps=20), keep_trace=True) for _ in range(2))
    assert first.trace == again.trace
    assert first.trace_hash == again.trace_hash


def test_any_part_of_a_plan_is_a_plan() -> None:
    plan = draw_transactions(4, steps=20)
    for part in (plan.steps[::2], plan.steps[12:], ()):
        assert simulate(plan.with_steps(part)).violations == []


def test_steps_do_what_they_say() -> None:
    commit = Transact(0, (0, 2), records=4, pause_seconds=0.0, end="commit", late=False)
    late = Transact(0, (0, 2), records=4, pause_seconds=0.0, end="commit", late=True)
    abort = Transact(1, (3,), records=2, pause_seconds=0.0, end="abort", late=False)
    steps = [Step(0.0, commit), Step(1.0, TakeOver(0)), Step(1.0, late), Step(0.0, abort)]
    steps += [Step(0.0, DriverStarts(0, anew=False)), Step(3.0, PowerLoss(0))]
    outcome = simulate(Plan(0, SETTINGS, steps, transactional=True))
    assert outcome.violations == []
    assert outcome.counts["committed"] == outcome.counts["shared"] + 1
    assert outcome.counts["shared"] > 0
    assert outcome.counts["aborted"] >= 1
    assert outcome.counts["fenced"] == 1


def test_one_who_commits_after_somebody_took_over_is_found() -> None:
    history, violations = History(), list[str]()
    holders = Holders(history, violations.append)
    for name in ("first", "second"):
        holders.starts(name)
        if name == "second":
            under_way = history.begin("first")
        holders.started(name)
    holders.committed("first", under_way)  # nobody had taken over when it began
    holders.committed("second", history.begin("second", "well"))
    assert violations == []
    holders.committed("first", history.begin("first", "late"))
    assert violations == ["first committed late, though second had taken over before it began"]


def test_what_a_frozen_client_sends_arrives_when_it_thaws_and_what_a_dead_one_sends_never() -> None:
    async def scenario() -> None:
        machine = Machine(0, SETTINGS, pytest.fail)
        received: list[bytes] = []
        sockets = []

        def accepted(socket: object) -> None:
            sockets.append(socket)

        machine.network.listen("other", 1, accepted)
        line = Lifeline(machine)
        ours = await line.connect("other", 1)

        def arrived() -> bytes:
            room = bytearray(100)
            try:
                count = sockets[0].receive_into(memoryview(room))
            except BlockingIOError:
                return b""
            received.append(bytes(room[:count]))
            return received[-1]

        line.freeze()
        ours.send(b"held back")
        ours.close()
        await asyncio.sleep(1)
        assert arrived() == b""
        line.thaw()
        await asyncio.sleep(1)
        assert arrived() == b"held back"
        line.die()
        with pytest.raises(ConnectionRefusedError):
            await line.connect(*ADDRESS.split(":"))
        await machine.shut_down()

    run(scenario())
