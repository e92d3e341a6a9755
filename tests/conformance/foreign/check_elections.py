"""Leaders and in-sync replicas of random partitions, decided here and by Apache Kafka's own controller.

Three differences are meant. Who is no replica any more is not eligible here. An eligible one that leads, and commits
alone, leaves nobody else eligible. And where nobody led before, nobody is noted as the last who did; Kafka notes -1.
"""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final
from uuid import UUID

import pytest

from riverlog.metadata.election import Election, Target, partition_change
from riverlog.metadata.image import LeaderRecoveryState, PartitionImage, RareState, ReplicaIds
from riverlog.metadata.leader_rules import LeaderRules
from riverlog.metadata.records import LEADER_UNCHANGED, RECOVERY_UNCHANGED, PartitionChangeRecord
from riverlog.model.ids import NO_NODE, LeaderEpoch, NodeId
from tests.conformance.foreign.build import JAVA, class_path

SOURCE: Final = Path(__file__).with_name("java") / "Elections.java"
SECONDS_MAX: Final = 300
CASES: Final = 30_000
TOPIC: Final = UUID(int=7)
UNSAID: Final = "-"
BROKERS: Final = [NodeId(each) for each in range(1, 8)]


@dataclass(frozen=True, slots=True)
class Case:
    """A partition, what it is to be, and who is there."""

    partition: PartitionImage
    target: Target
    rules: LeaderRules
    election: Election
    present: frozenset[NodeId]
    forgetful: ReplicaIds

    def can_lead(self, node_id: NodeId, partition: PartitionImage) -> bool:
        return node_id in self.present

    def line(self) -> str:
        """Return the case as Elections.java reads it."""
        partition, rare, target = self.partition, self.partition.rare, self.target
        recovery = None if target.recovery is None else int(target.recovery)
        fields = [
            *(_text(each) for each in (partition.replicas, partition.isr, rare.adding_replicas)),
            *(_text(each) for each in (rare.removing_replicas, rare.eligible_leader_replicas, rare.last_known_elr)),
            str(partition.leader),
            str(int(rare.leader_recovery_state)),
            _text(tuple(self.present)),
            str(self.rules.least(partition.replicas)),
            str(self.rules.keeps_eligible).lower(),
            self.election.name,
            *(_text(each) for each in (target.isr, target.replicas, target.adding, target.removing)),
            UNSAID if recovery is None else str(recovery),
            _text(self.forgetful),
        ]
        return "\t".join(fields)


def _text(ids: ReplicaIds | None) -> str:
    return UNSAID if ids is None else ",".join(str(each) for each in ids)


def _some(random: Random, ids: ReplicaIds, share: float) -> ReplicaIds:
    return tuple(each for each in random.sample(ids, len(ids)) if random.random() < share)


def _case(random: Random) -> Case:
    """Return a partition as it may be, and a change as the machine asks for it."""
    keeps_eligible = random.random() < 0.7
    replicas = tuple(random.sample(BROKERS[:6], random.randint(1, 5)))
    isr = _some(random, replicas, 0.5)
    if not (keeps_eligible or isr):
        isr = replicas[:1]
    rules = LeaderRules(random.randint(1, 4), unclean=False, keeps_eligible=keeps_eligible)
    eligible: ReplicaIds = ()
    if keeps_eligible and len(isr) < rules.least(replicas):
        eligible = tuple(sorted(each for each in _some(random, replicas, 0.5) if each not in isr))
    leader = random.choice(isr) if isr and random.random() < 0.75 else NO_NODE
    last = (random.choice(replicas),) if keeps_eligible and leader == NO_NODE and random.random() < 0.5 else ()
    moving = _some(random, replicas, 0.5)[: len(replicas) - 1] if random.random() < 0.35 else ()
    cut = random.randint(0, len(moving))
    rare = RareState(
        tuple(sorted(moving[:cut])),
        tuple(sorted(moving[cut:])),
        eligible,
        last,
        LeaderRecoveryState(random.random() < 0.15),
    )
    directories = tuple(UUID(int=1000 + each) for each in replicas)
    partition = PartitionImage(0, replicas, isr, leader, LeaderEpoch(5), 9, directories, rare)
    target, absent, forgetful = _target(random, partition)
    present = frozenset(_some(random, tuple(BROKERS), 0.6)) - set(absent)
    if target.recovery is not None and target.isr is not None:
        present |= set(target.isr)  # nobody else is taken for in sync
    return Case(partition, target, rules, random.choice(list(Election)), present, forgetful)


def _target(random: Random, partition: PartitionImage) -> tuple[Target, ReplicaIds, ReplicaIds]:
    """Return a change, who cannot lead with that, and who may have lost records.

    Kafka calls no move off to replicas of which only eligible ones are left.
    """
    rare, isr, replicas = partition.rare, partition.isr, partition.replicas
    match random.randrange(6):
        case 0 | 1 if isr or rare.eligible_leader_replicas:  # somebody goes, perhaps without having stopped cleanly
            gone = random.choice((*isr, *rare.eligible_leader_replicas))
            forgetful = (gone,) if random.random() < 0.5 else ()
            return Target(isr=tuple(each for each in isr if each != gone)), (gone,), forgetful
        case 2 if partition.leader != NO_NODE:  # the leader says who is in sync
            others = tuple(each for each in replicas if each != partition.leader)
            wanted = (partition.leader, *_some(random, others, 0.6))
            return Target(isr=wanted, recovery=LeaderRecoveryState.RECOVERED), (), ()
        case 3:  # a move begins
            wanted = tuple(random.sample(BROKERS, random.randint(1, 4)))
            removing = tuple(sorted(set(replicas) - set(wanted)))
            adding = tuple(sorted(set(wanted) - set(replicas)))
            return Target(replicas=(*wanted, *removing), adding=adding, removing=removing), (), ()
        case 4 if partition.is_reassigning:  # and is called off
            before = tuple(each for each in replicas if each not in rare.adding_replicas)
            left = tuple(each for each in isr if each not in rare.adding_replicas)
            if left:
                return Target(isr=left, replicas=before, adding=(), removing=()), (), ()
    return Target(), (), ()


def _merged(case: Case, change: PartitionChangeRecord | None) -> dict[str, object]:
    """Return what a record makes of a partition, but for the differences that are meant."""
    partition, rare = case.partition, case.partition.rare
    if change is None:
        change = PartitionChangeRecord(0, TOPIC)
    replicas = partition.replicas if change.replicas is None else tuple(change.replicas)
    isr = partition.isr if change.isr is None else tuple(change.isr)
    eligible, last = change.eligible_leader_replicas, change.last_known_elr
    eligible = rare.eligible_leader_replicas if eligible is None else eligible
    is_small = len(isr) < case.rules.least(tuple(NodeId(each) for each in replicas))
    return {
        "replicas": replicas,
        "in sync": isr,
        "leader": partition.leader if change.leader == LEADER_UNCHANGED else change.leader,
        "a new leader epoch": change.leader != LEADER_UNCHANGED,
        "adding": rare.adding_replicas if change.adding_replicas is None else change.adding_replicas,
        "removing": rare.removing_replicas if change.removing_replicas is None else change.removing_replicas,
        "recovery": int(
            rare.leader_recovery_state
            if change.leader_recovery_state == RECOVERY_UNCHANGED
            else change.leader_recovery_state
        ),
        "directories": partition.directories if change.directories is None else change.directories,
        "eligible": sorted(each for each in eligible if each in replicas) if is_small else [],
        "last known": rare.last_known_elr if last is None or last == (NO_NODE,) else last,
    }


def _kafkas(line: str) -> PartitionChangeRecord | None:
    if not line:
        return None
    isr, leader, replicas, adding, removing, recovery, directories, eligible, last = line.split("\t")

    def ids(field: str) -> tuple[int, ...] | None:
        return None if field == UNSAID else tuple(int(each) for each in field.split(",") if each)

    places = ids(directories)
    return PartitionChangeRecord(
        partition_id=0,
        topic_id=TOPIC,
        isr=ids(isr),
        leader=int(leader),
        replicas=ids(replicas),
        adding_replicas=ids(adding),
        removing_replicas=ids(removing),
        leader_recovery_state=int(recovery),
        directories=None if places is None else tuple(UUID(int=each) for each in places),
        eligible_leader_replicas=ids(eligible),
        last_known_elr=ids(last),
    )


@pytest.mark.parametrize("seed", range(2))
def test_partitions_become_what_kafka_makes_of_them(seed: int) -> None:
    random = Random(seed)
    cases = [_case(random) for _ in range(CASES)]
    given = "".join(f"{case.line()}\n" for case in cases)
    command = [*JAVA, "-cp", class_path(), str(SOURCE)]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=SECONDS_MAX, check=True)
    answers = done.stdout.split("\n")[:-1]
    assert len(answers) == CASES
    for case, answer in zip(cases, answers, strict=True):
        own = partition_change(
            TOPIC,
            case.partition,
            case.target,
            case.rules,
            case,
            election=case.election,
            forgetful=case.forgetful,
            directory_of=lambda node_id: UUID(int=2000 + node_id),
        )
        assert _merged(case, own) == _merged(case, _kafkas(answer)), case
