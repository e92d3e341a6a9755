"""Plans with transactions, drawn from a seed: who writes, copies and drives, who dies and freezes, and the troubles."""

from random import Random
from typing import Final

from tests.simulation.plan import Action, Heal, Plan, Step, draw_action, draw_settings, draw_troubles
from tests.simulation.transaction_acts import (
    CopierDies,
    CopierFreezes,
    CopierStarts,
    DriverDies,
    DriverFreezes,
    DriverStarts,
    DropTopic,
    End,
    TakeOver,
    Transact,
    WritePlainly,
    WriterDies,
    WriterFreezes,
)

WRITERS: Final = 3
COPIERS: Final = 2
PIPELINES: Final = 2
_WRITTEN: Final = 6
_ENDS: Final[tuple[End, ...]] = ("commit", "commit", "commit", "commit", "abort", "leave open")
_WRITING: Final = ("transact",) * 12 + ("plain", "plain", "take over", "writer dies", "writer freezes", "drop topic")
_COPYING: Final = ("copier starts", "copier starts", "copier dies", "copier freezes")
_DRIVING: Final = ("driver starts", "driver starts", "driver dies", "driver freezes")
_AT_ONCE: Final = frozenset({"power", "power_soon", "fail", "full", "slow"})
"""Troubles of a disk; a node that leaves all to the page cache is spared them."""


def draw_transactions(seed: int, steps: int = 70) -> Plan:
    """Draw a plan: a third of its steps are troubles."""
    random = Random(f"{seed} transactions")
    settings = draw_settings(Random(f"{seed} settings")) | {
        "offsets.topic.num.partitions": str(random.choice((1, 3))),
        "transaction.state.log.num.partitions": str(random.choice((1, 3))),
        "group.min.session.timeout.ms": "1000",
        "group.consumer.session.timeout.ms": "3000",
        "group.consumer.heartbeat.interval.ms": "300",
        "group.consumer.assignment.interval.ms": "0",
        "group.initial.rebalance.delay.ms": "0",
    }
    troubles = draw_troubles(random)
    if settings["durability"] != "fsync":
        troubles = [each for each in troubles if each not in _AT_ONCE] + ["kill"]
    work = list(_WRITING)
    drawn: list[Step] = []
    if random.random() < 0.7:
        work += _COPYING
        drawn.append(Step(0.0, CopierStarts(0)))
    if random.random() < 0.7:
        work += _DRIVING
        drawn.append(Step(0.0, DriverStarts(0, anew=False)))
    while len(drawn) < steps:
        after_seconds = random.choice((0.0, 0.01, 0.05, 0.5, 1.5)) * random.random()
        if random.random() < 0.33:
            name = random.choice(troubles)
            drawn.append(Step(after_seconds, draw_action(name, random)))
            if name in ("fail", "full", "hindered", "slow"):
                drawn.append(Step(random.random(), Heal()))
        else:
            drawn.append(Step(after_seconds, _draw_act(random.choice(work), random)))
    return Plan(seed, settings, drawn, transactional=True)


def _draw_act(name: str, random: Random) -> Action:
    writer, copier, pipeline = random.randrange(WRITERS), random.randrange(COPIERS), random.randrange(PIPELINES)
    turns, seconds = random.randrange(30), random.random() * random.choice((0.2, 2.0, 5.0))
    match name:
        case "transact":
            partitions = tuple(random.sample(range(_WRITTEN), random.randrange(1, 4)))
            pause = random.choice((0.0, 0.01, 0.3, 3.0))
            end = random.choice(_ENDS)
            return Transact(writer, partitions, random.randrange(1, 10), pause, end, late=random.random() < 0.25)
        case "plain":
            return WritePlainly(random.randrange(_WRITTEN), random.randrange(1, 5))
        case "take over":
            return TakeOver(writer)
        case "writer dies":
            return WriterDies(writer, turns)
        case "writer freezes":
            return WriterFreezes(writer, seconds)
        case "copier starts":
            return CopierStarts(copier)
        case "copier dies":
            return CopierDies(copier, turns)
        case "copier freezes":
            return CopierFreezes(copier, seconds)
        case "driver starts":
            return DriverStarts(pipeline, anew=random.random() < 0.2)
        case "driver dies":
            return DriverDies(pipeline, turns)
        case "driver freezes":
            return DriverFreezes(pipeline, seconds)
        case _:
            return DropTopic()
