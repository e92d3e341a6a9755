"""What happens in one run of a cluster: drawn from a seed, plain data, and any part of it can be left out."""

from dataclasses import dataclass, replace
from random import Random
from typing import Final, NamedTuple

FAULTS: Final = (
    "kill",
    "power",
    "power at a call",
    "power everywhere",
    "stop",
    "pause",
    "stall",
    "wall clock",
    "cut off",
    "cut one way",
    "cut between",
    "reset",
    "slow link",
    "slow disk",
    "full disk",
    "active controller",
)
SECONDS: Final = 25.0
_HEALED_EVERY: Final = 6.0


class Step(NamedTuple):
    """One fault, or the end of those that last: when, what, where, how much."""

    at: float
    fault: str
    target: int
    """Which node, counted from 0; of those there are."""
    amount: float
    """Between 0 and 1."""


@dataclass(frozen=True)
class Plan:
    """A cluster and what happens to it."""

    seed: int
    controllers: int
    brokers: int
    combined: bool
    """Whether the first brokers are controllers, too."""
    snapshot_bytes: int
    steps_in_work: bool
    """Whether the loop goes on between any two calls to the disk of a worker."""
    steps: tuple[Step, ...]

    def with_steps(self, steps: tuple[Step, ...]) -> "Plan":
        return replace(self, steps=steps)

    @property
    def roles(self) -> dict[int, str]:
        """Return what each node is, by its id."""
        roles = dict.fromkeys(range(1, self.controllers + 1), "controller")
        if self.combined:
            for number in range(1, self.brokers + 1):
                roles[number] = "broker,controller" if number in roles else "broker"
        else:
            roles |= dict.fromkeys(range(11, 11 + self.brokers), "broker")
        return roles


def draw_plan(seed: int, only: tuple[str, ...] | None = None) -> Plan:
    """Draw a run: every one has some of the faults only, so that each is alone now and then."""
    random = Random(f"{seed} plan")
    kinds = only or random.sample(FAULTS, random.randrange(2, 7))
    every = random.choice((0.7, 1.5, 3.0))
    steps, at = [], 2.0
    while (at := at + random.expovariate(1 / every)) < SECONDS:
        fault = "heal" if random.random() < every / _HEALED_EVERY else random.choice(kinds)
        steps.append(Step(round(at, 3), fault, random.randrange(1000), round(random.random(), 3)))
    return Plan(
        seed,
        controllers=random.choice((1, 3, 3, 3, 5)),
        brokers=random.choice((2, 3)),
        combined=random.random() < 0.4,
        snapshot_bytes=random.choice((2_048, 20_000, 10**8)),
        steps_in_work=random.random() < 0.3,
        steps=tuple(steps),
    )
