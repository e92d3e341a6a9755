"""One run of a simulated quorum: a client that writes, faults at random, and in the end a cluster that must be whole.

From its seed a run draws how many voters and observers there are, which faults come and how often. At the end all
faults are lifted: then a leader must be there soon, and what it commits must reach every node.
"""

from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Final, TypeVar

from riverlog.model.ids import NodeId
from riverlog.raft import events as hears
from riverlog.raft.messages import AddVoterRequest, RemoveVoterRequest
from riverlog.raft.roles.leader import Leader
from riverlog.raft.voters import VoterSet
from tests.simulation.quorum.cluster import Cluster
from tests.simulation.quorum.hosts import Host, endpoints_of

T = TypeVar("T")

FAULTS: Final = (
    "crash",
    "pause",
    "cut",
    "isolate",
    "reset",
    "skew",
    "slow disk",
    "slow net",
    "snapshot",
    "voters",
    "wipe",
    "stop",
)
SECONDS: Final = 12.0
HEAL_SECONDS: Final = 20.0


@dataclass(frozen=True)
class QuorumOutcome:
    """What a run came to."""

    seed: int
    violations: list[str]
    counts: Counter[str]


class QuorumRun:
    """Draws what happens, and lets it happen."""

    def __init__(self, seed: int, *, only: tuple[str, ...] | None = None, voters: int | None = None) -> None:
        self.random = Random(f"{seed} nemesis")
        voters = voters or self.random.choice((1, 3, 3, 3, 5))
        kraft_version = 0 if self.random.random() < 0.15 else 1
        self.cluster = Cluster(
            seed,
            voters,
            observers=self.random.randrange(0, 4),
            kraft_version=kraft_version,
            auto_join=kraft_version == 1 and self.random.random() < 0.3,
        )
        self.seed = seed
        self.counts: Counter[str] = Counter()
        faults = [fault for fault in FAULTS if self.random.random() < 0.6] if only is None else list(only)
        self.faults = faults
        self.rate = self.random.choice((0.05, 0.1, 0.3))
        self.value = 0
        self._ticket = 0

    def run(self) -> QuorumOutcome:
        """Let faults come for some seconds, then heal everything and demand progress."""
        cluster = self.cluster
        cluster.latency = self.random.choice((0.0003, 0.001, 0.01))
        for host in cluster.hosts.values():
            host.start()
        cluster.after(0.0, self._write)
        if self.faults:
            cluster.after(1.0, self._hurt)
        cluster.run(SECONDS)
        self._heal()
        cluster.run(SECONDS + HEAL_SECONDS)
        if not cluster.checker.violations:
            self._judge()
        checker = cluster.checker
        checker.kept.judge(checker.stays.log)
        self.counts["elections"] += checker.elections
        self.counts["acknowledged"] += len(checker.kept.values)
        self.counts["committed"] += len(checker.stays.log)
        self.counts["events"] += cluster.events
        return QuorumOutcome(self.seed, checker.violations, self.counts)

    # -- the client

    def _write(self) -> None:
        """Let whoever leads take a value."""
        self.cluster.after(self.random.random() * 0.05, self._write)
        for host in self.cluster.hosts.values():
            value = f"v{self.value}"
            offset = host.propose(value)
            if offset is not None:
                self.value += 1
                self.cluster.checker.proposed(host, value, offset)

    # -- faults

    def _hurt(self) -> None:
        if self.cluster.now >= SECONDS:
            return
        self.cluster.after(self.random.expovariate(1 / self.rate), self._hurt)
        fault = self.random.choice(self.faults)
        host = self._any(list(self.cluster.hosts.values()))
        self.counts[fault] += 1
        match fault:
            case "crash":
                self._crash(host)
            case "stop" if host.raft is not None:
                host.hear(hears.Stopping())
                self.cluster.after(0.2, lambda: self._crash(host))
            case "pause":
                host.paused_until = self.cluster.now + self.random.choice((0.05, 0.3, 1.0, 3.0))
                self.cluster.at(host.paused_until + 1e-6, host.resume)
            case "cut":
                self._cut(host.node, self._any(list(self.cluster.hosts)))
            case "isolate":
                for other in self.cluster.hosts:
                    self._cut(host.node, other, seconds=1.5)
                    if self.random.random() < 0.5:
                        self._cut(other, host.node, seconds=1.5)
            case "reset":
                self.cluster.reset(host.node)
            case "skew":
                host.drift(self.random.choice((0.9, 1.0, 1.1)))
            case "slow disk":
                host.disk_seconds = self.random.choice((0.001, 0.002, 0.05, 0.3))
            case "slow net":
                self.cluster.latency = self.random.choice((0.0003, 0.001, 0.01, 0.08))
            case "snapshot":
                host.snapshot()
            case "voters":
                self._change_voters()
            case "wipe":
                self._wipe(host)

    def _any(self, values: list[T]) -> T:
        return values[self.random.randrange(len(values))]

    def _crash(self, host: Host) -> None:
        if host.running is None:
            return
        self.counts["crashes"] += 1
        host.crash()
        life = host.life
        self.cluster.after(self.random.choice((0.01, 0.2, 1.0, 3.0)), lambda: self._restart(host, life))

    def _restart(self, host: Host, life: int) -> None:
        if host.running is None and host.life == life:
            host.start()

    def _cut(self, source: NodeId, target: NodeId, seconds: float | None = None) -> None:
        if source != target:
            self.cluster.cuts.add((source, target))
            self.cluster.after(
                seconds or self.random.choice((0.2, 1.0, 4.0)), lambda: self.cluster.cuts.discard((source, target))
            )

    def _change_voters(self) -> None:
        """Ask whoever leads to add or remove a voter."""
        if self.cluster.kraft_version == 0:
            return
        for host in self.cluster.hosts.values():
            if host.raft is None or not isinstance(host.raft.role, Leader) or host.paused_until > self.cluster.now:
                continue
            voters = host.raft.replica.voters.latest
            others = [each for each in self.cluster.hosts.values() if each.may_vote and each.node not in voters.by_id]
            self._ticket += 1
            request: AddVoterRequest | RemoveVoterRequest
            if others and (len(voters) < 3 or self.random.random() < 0.5):
                chosen = self._any(others)
                request = AddVoterRequest(chosen.key, endpoints_of(chosen.node))
            elif len(voters) > 1:
                request = RemoveVoterRequest(self._any(list(voters)).key)
            else:
                continue
            if self._survives(voters, request):
                host.asked(0, -self._ticket, request)

    def _survives(self, voters: VoterSet, request: AddVoterRequest | RemoveVoterRequest) -> bool:
        """Return whether a majority of the voters has its disk still, after the change too."""
        if isinstance(request, AddVoterRequest):
            return self._dead_among(voters) + 1 <= (len(voters) + 1 - 1) // 2
        after = voters.without(request.voter)
        return len(after) > 0 and self._dead_among(after) <= (len(after) - 1) // 2

    def _dead_among(self, voters: VoterSet) -> int:
        return sum(1 for voter in voters if voter.key in self.cluster.checker.wiped.dead)

    def _wipe(self, host: Host) -> None:
        """Wipe a disk, if a majority of every set of voters that may come to count keeps its own."""
        if self.cluster.kraft_version == 0:
            return
        dead = self.cluster.checker.wiped.dead
        sets = [each.raft.replica.voters.latest for each in self.cluster.hosts.values() if each.raft is not None]
        disks = [each.disk for each in self.cluster.hosts.values()]
        sets += [entry.voters for disk in disks for entry in disk.prefix(disk.end) if entry.voters is not None]
        sets.append(self.cluster.hosts[NodeId(1)].initial)
        for voters in sets:
            lost = sum(1 for voter in voters if voter.key in dead or voter.key == host.key)
            if lost > 0 and lost > (len(voters) - 1) // 2 - (1 if len(voters) > 3 else 0):
                return
        if dead:
            return  # one at a time: the next only when the first is replaced
        dead.add(host.key)
        self.counts["wipes"] += 1
        host.wipe(self.cluster.new_directory())
        life = host.life
        self.cluster.after(0.5, lambda: self._restart(host, life))

    # -- the end

    def _heal(self) -> None:
        cluster = self.cluster
        cluster.cuts.clear()
        cluster.latency = 0.001
        for host in cluster.hosts.values():
            host.disk_seconds = 0.002
            if host.paused_until > cluster.now:
                host.paused_until = cluster.now
            if host.raft is not None and host.raft.replica.stopping:
                host.crash()
            if host.running is None:
                host.start()
            else:
                host.resume()

    def _judge(self) -> None:
        """Demand that somebody leads, and that everybody has what is committed."""
        checker, hosts = self.cluster.checker, list(self.cluster.hosts.values())
        leaders = [host for host in hosts if host.raft is not None and isinstance(host.raft.role, Leader)]
        newest = max((host.raft.epoch for host in leaders if host.raft is not None), default=-1)
        leaders = [host for host in leaders if host.raft is not None and host.raft.epoch == newest]
        if len(leaders) != 1:
            checker.violations.append(f"nobody leads after {HEAL_SECONDS:.0f} s without a fault")
            return
        behind = [
            str(host.key)
            for host in hosts
            if host.raft is None or host.raft.replica.high_watermark < len(checker.stays.log) - 20
        ]
        if behind:
            checker.violations.append(f"{', '.join(behind)} did not catch up with {len(checker.stays.log)} records")
        if not any(offset > len(checker.stays.log) - 50 for offset in checker.kept.values.values()):
            checker.violations.append("nothing was acknowledged at the end")


def simulate_quorum(seed: int, *, only: tuple[str, ...] | None = None, voters: int | None = None) -> QuorumOutcome:
    """Run one seed."""
    return QuorumRun(seed, only=only, voters=voters).run()
