"""What happens in a simulated run, as an explicit list of steps drawn from a seed.

A step names topics and clients by number and makes sense in any state, so that any part of a plan is a plan too:
that is how a failing one is made smaller. Each seed chooses which kinds of trouble there are, so that rare combinations
are not drowned by common ones.
"""

import errno
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from tests.simulation.transaction_acts import TransactionAct

TOPICS: Final = 4
COMPACTED: Final = 3
"""The topic whose records stay for as long as no later one has their key."""
PARTITIONS_MAX: Final = 3
PRODUCERS: Final = 3
MEMBERS: Final = 8


@dataclass(frozen=True, slots=True)
class Produce:
    """A producer sends some records to one partition, pipelined."""

    producer: int
    topic: int
    partition: int
    count: int


@dataclass(frozen=True, slots=True)
class CreateTopic:
    """The topic is created where there is none."""

    topic: int
    partitions: int


@dataclass(frozen=True, slots=True)
class DeleteTopic:
    """The topic is deleted, and created again under the same name."""

    topic: int


@dataclass(frozen=True, slots=True)
class Churn:
    """A topic of another name is made and deleted so many times, while it is written to and read."""

    lives: int
    policy: str


@dataclass(frozen=True, slots=True)
class DeleteRecords:
    """Some of a partition's records are given up, from the front."""

    topic: int
    partition: int
    share: float


@dataclass(frozen=True, slots=True)
class AlterTopic:
    """A topic's setting is changed."""

    topic: int
    setting: str
    value: str


@dataclass(frozen=True, slots=True)
class PowerLoss:
    """The machine loses power: now, or in the middle of what it does next."""

    disk_steps: int


@dataclass(frozen=True, slots=True)
class Kill:
    """The node's process is killed; the machine goes on."""


@dataclass(frozen=True, slots=True)
class Restart:
    """The node is stopped in good order and started again."""


@dataclass(frozen=True, slots=True)
class FailDisk:
    """A call to the disk fails, or all of a kind until `Heal`."""

    after: int
    error: int
    kinds: tuple[str, ...]
    lasting: bool


@dataclass(frozen=True, slots=True)
class Rot:
    """A bit of a closed segment, or of one of its indexes, changes on the medium: that far into its files."""

    topic: int
    partition: int
    share: float


@dataclass(frozen=True, slots=True)
class Heal:
    """The disk works again, where it can."""


@dataclass(frozen=True, slots=True)
class SlowDisk:
    """The disk takes its time for each call of a worker, until `Heal` or the next start."""

    seconds_max: float


@dataclass(frozen=True, slots=True)
class CutConnections:
    """Some clients lose their connections."""


@dataclass(frozen=True, slots=True)
class JumpClock:
    """Somebody sets the wall clock."""

    ahead_ms: int


@dataclass(frozen=True, slots=True)
class Join:
    """A member joins its group, unless it is there."""

    member: int


@dataclass(frozen=True, slots=True)
class Leave:
    """A member leaves in good order."""

    member: int


@dataclass(frozen=True, slots=True)
class Vanish:
    """A member is gone without a word."""

    member: int


@dataclass(frozen=True, slots=True)
class CommitAlone:
    """Somebody who is no member commits for a group that has none."""

    topic: int
    partition: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing happens, but time passes."""


@dataclass(frozen=True, slots=True)
class MakeMistake:
    """The handler of a request behind the next ones raises what nobody expects: before its work, or behind it."""

    after: int
    late: bool


Trouble = PowerLoss | Kill | Restart | FailDisk | Heal | SlowDisk | CutConnections | JumpClock | MakeMistake
"""What befalls a machine, whoever uses it."""
Action = (
    Produce
    | CreateTopic
    | DeleteTopic
    | Churn
    | DeleteRecords
    | AlterTopic
    | Trouble
    | Rot
    | Join
    | Leave
    | Vanish
    | CommitAlone
    | TransactionAct
    | Wait
)


@dataclass(frozen=True, slots=True)
class Step:
    """An action, and the seconds that pass before it."""

    after_seconds: float
    action: Action


@dataclass(frozen=True)
class Plan:
    """Everything that determines a run."""

    seed: int
    settings: dict[str, str] = field(default_factory=dict)
    steps: Sequence[Step] = ()
    transactional: bool = False
    """Whether its world is one of transactions."""

    def with_steps(self, steps: Sequence[Step]) -> "Plan":
        return replace(self, steps=steps)

    def __str__(self) -> str:
        lines = [f"seed {self.seed}, settings {self.settings}"]
        lines += [f"  +{step.after_seconds:.3f}s {step.action}" for step in self.steps]
        return "\n".join(lines)


_READS: Final = ("read", "open")
_SYNCS: Final = ("sync", "sync_folder")
_WRITES: Final = ("write", *_SYNCS, "create", "make_folder", "rename", "remove", "truncate")
_HINDERED_WRITES: Final = ("write", "create", "make_folder", "rename", "remove", "truncate")
_WORK: Final = ("produce",) * 12 + ("create", "delete_topic", "delete_records", "delete_records", "alter", "wait")
TROUBLES: Final = (
    "power",
    "power",
    "power_soon",
    "power_soon",
    "kill",
    "restart",
    "fail",
    "full",
    "hindered",
    "slow",
    "cut",
    "clock",
    "mistake",
)


def draw_plan(seed: int, steps: int = 220) -> Plan:
    """Draw a plan: not quite half of its steps are troubles, of the kinds that this seed has chosen."""
    random = Random(f"{seed} plan")
    troubles = draw_troubles(random)
    drawn = [Step(0.0, CreateTopic(topic, random.randrange(1, PARTITIONS_MAX + 1))) for topic in range(TOPICS)]
    while len(drawn) < steps:
        after_seconds = random.choice((0.0, 0.002, 0.01, 0.05, 0.5)) * random.random()
        name = random.choice(troubles) if random.random() < 0.45 else random.choice(_WORK)
        drawn.append(Step(after_seconds, draw_action(name, random)))
        if name in ("fail", "full", "hindered", "slow"):
            drawn.append(Step(random.random(), Heal()))
    return Plan(seed, draw_settings(Random(f"{seed} settings")), drawn)


def draw_troubles(random: Random) -> list[str]:
    """Draw the names of the troubles that there are."""
    kinds = sorted(set(TROUBLES))
    chosen = ["power_soon", *random.sample(kinds, random.randrange(2, len(kinds) + 1))]
    return [trouble for trouble in TROUBLES if trouble in chosen]


def draw_failing_flushes(seed: int) -> Plan:
    """Draw a short plan in which flushes fail while records are on their way, and the power after each."""
    random = Random(f"{seed} flushes")
    steps = [Step(0.0, CreateTopic(0, 1)), Step(0.5, Wait())]
    for _ in range(6):
        steps += [
            Step(0.0, FailDisk(random.randrange(3), errno.EIO, ("sync",), lasting=False)),
            *(Step(0.1 * random.random(), Produce(random.randrange(2), 0, 0, 3)) for _ in range(3)),
            Step(0.5, Heal()),
            Step(0.0, PowerLoss(0)),
        ]
    return Plan(seed, draw_settings(Random(f"{seed} settings")) | {"durability": "fsync"}, steps)


def with_rot(plan: Plan) -> Plan:
    """Make bits rot now and then while a plan is carried out."""
    random = Random(f"{plan.seed} rot")
    steps = list(plan.steps)
    for _ in range(random.randrange(1, 12)):
        rot = Rot(random.randrange(TOPICS), random.randrange(PARTITIONS_MAX), random.random())
        steps.insert(random.randrange(len(steps) // 4, len(steps) + 1), Step(0.0, rot))
    return plan.with_steps(steps)


def with_churn(plan: Plan) -> Plan:
    """Make topics come and go beside a plan, again and again under the same name."""
    random = Random(f"{plan.seed} churn")
    steps = list(plan.steps)
    for _ in range(random.randrange(1, 5)):
        churn = Churn(random.randrange(1, 6), random.choice(("delete", "compact")))
        steps.insert(random.randrange(TOPICS, len(steps) + 1), Step(0.0, churn))
    return plan.with_steps(steps)


def with_groups(plan: Plan) -> Plan:
    """Make members of groups come, go and commit while a plan is carried out.

    No topic is deleted then: a group would go on in the new one where it was in the old, as with Kafka.
    """
    random = Random(f"{plan.seed} groups")
    steps = [step for step in plan.steps if not isinstance(step.action, DeleteTopic)]
    for _ in range(random.randrange(10, 40)):
        kind = random.choice((Join, Join, Join, Leave, Vanish, CommitAlone, CommitAlone))
        if kind is CommitAlone:
            action: Action = CommitAlone(random.randrange(TOPICS), random.randrange(PARTITIONS_MAX))
        else:
            action = kind(random.randrange(MEMBERS))
        steps.insert(random.randrange(TOPICS, len(steps) + 1), Step(random.choice((0.0, 0.1, 0.8)), action))
    settings = {
        "offsets.topic.num.partitions": str(random.choice((1, 2, 5))),
        "group.min.session.timeout.ms": "1000",
        "group.consumer.session.timeout.ms": "3000",
        "group.consumer.heartbeat.interval.ms": "300",
        "group.consumer.assignment.interval.ms": str(random.choice((0, 200))),
    }
    return Plan(plan.seed, plan.settings | settings, steps)


def draw_settings(random: Random) -> dict[str, str]:
    """Draw a node's settings."""
    return {
        "durability": random.choice(("fsync", "fsync", "fsync", "os")),
        "auto.create.topics.enable": "false",
        "log.segment.bytes": str(random.choice((1_024, 4_096, 1 << 20))),
        "log.index.interval.bytes": str(random.choice((0, 200, 4_096))),
        "log.retention.check.interval.ms": "700",
        "log.flush.offset.checkpoint.interval.ms": str(random.choice((150, 1_000, 60_000))),
        "log.segment.delete.delay.ms": str(random.choice((0, 500))),
        "log.cleaner.backoff.ms": str(random.choice((50, 400))),
        "log.retention.ms": "-1",
        "metadata.log.max.record.bytes.between.snapshots": str(random.choice((1, 1_500, 1 << 20))),
    }


def draw_action(name: str, random: Random) -> Action:
    """Draw an action of this name."""
    topic = random.randrange(TOPICS)
    partition = random.randrange(PARTITIONS_MAX)
    match name:
        case "produce":
            return Produce(random.randrange(PRODUCERS), topic, partition, random.randrange(1, 12))
        case "create":
            return CreateTopic(topic, random.randrange(1, PARTITIONS_MAX + 1))
        case "delete_topic":
            return DeleteTopic(topic)
        case "delete_records":
            return DeleteRecords(topic, partition, random.random())
        case "alter":
            setting, values = random.choice(
                (
                    ("segment.bytes", ("1024", "3000", "100000")),
                    ("retention.bytes", ("-1", "2000", "20000")),
                    ("retention.ms", ("-1", "3000")),
                    ("message.timestamp.type", ("CreateTime", "LogAppendTime")),
                )
            )
            return AlterTopic(topic, setting, random.choice(values))
        case "power":
            return PowerLoss(0)
        case "power_soon":
            return PowerLoss(random.randrange(1, random.choice((4, 16, 64))))
        case "kill":
            return Kill()
        case "restart":
            return Restart()
        case "fail":
            kinds = random.choice(
                (_WRITES, ("sync",), ("write",), _SYNCS, ("rename", "remove", "create"), _READS, ("read",))
            )
            return FailDisk(random.randrange(0, 12), errno.EIO, kinds, lasting=random.random() < 0.3)
        case "full":
            kinds = random.choice((("write",), ("write", "create"), ("create", "make_folder"), ("rename",), _WRITES))
            return FailDisk(random.randrange(0, 6), errno.ENOSPC, kinds, lasting=random.random() < 0.6)
        case "hindered":
            kinds = random.choice((("open", "create"), _READS, _WRITES[:1], ("open",), (*_READS, *_HINDERED_WRITES)))
            error = random.choice((errno.EMFILE, errno.ENOMEM))
            return FailDisk(random.randrange(0, 12), error, kinds, lasting=random.random() < 0.4)
        case "slow":
            return SlowDisk(random.choice((0.05, 0.4)))
        case "cut":
            return CutConnections()
        case "clock":
            return JumpClock(random.choice((-600_000, -5_000, 5_000, 600_000)))
        case "mistake":
            return MakeMistake(random.randrange(8), random.random() < 0.5)
        case _:
            return Wait()
