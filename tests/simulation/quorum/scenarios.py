"""Quorums in which one thing is wrong, and what must not come of it."""

from riverlog.raft.messages import RemoveVoterRequest
from riverlog.raft.roles.leader import Leader
from tests.simulation.quorum.cluster import Cluster
from tests.simulation.quorum.hosts import Host


def started(seed: int, voters: int = 3) -> Cluster:
    """Start a quorum and let it elect."""
    cluster = Cluster(seed, voters, observers=0)
    for host in cluster.hosts.values():
        host.start()
    cluster.run(3.0)
    return cluster


def leader_of(cluster: Cluster) -> Host:
    """Return who leads the newest epoch."""
    leaders = [host for host in cluster.hosts.values() if host.raft is not None and isinstance(host.raft.role, Leader)]
    assert leaders
    return max(leaders, key=lambda host: host.raft.epoch if host.raft is not None else -1)


def cut_off_one_way(seed: int) -> list[str]:
    """Let one follower hear nobody, and be heard by all: the leader stays, and no epoch begins."""
    cluster = started(seed)
    leader = leader_of(cluster)
    assert leader.raft is not None
    epoch = leader.raft.epoch
    deaf = next(node for node in cluster.hosts if node != leader.node)
    for node in cluster.hosts:
        cluster.cuts.add((node, deaf))
    cluster.run(15.0)
    cluster.cuts.clear()
    cluster.run(20.0)
    now = leader_of(cluster)
    assert now.raft is not None
    if (now.node, now.raft.epoch) != (leader.node, epoch):
        return [f"{leader.node} led epoch {epoch}, and then {now.node} epoch {now.raft.epoch}"]
    return cluster.checker.violations


def lonely_leader(seed: int) -> list[str]:
    """Let nobody reach the leader: it must notice by itself, and another one lead."""
    cluster = started(seed)
    leader = leader_of(cluster)
    for node in cluster.hosts:
        cluster.cuts.add((node, leader.node))
    cluster.run(8.0)
    assert leader.raft is not None
    if isinstance(leader.raft.role, Leader):
        return [f"{leader.node} leads on although nobody reaches it"]
    if leader_of(cluster).node == leader.node:
        return ["nobody else leads"]
    return cluster.checker.violations


def two_removals_at_once(seed: int) -> list[str]:
    """Ask a leader that nobody hears to remove both others: it must not be alone in the right."""
    cluster = started(seed)
    leader = leader_of(cluster)
    others = [host for host in cluster.hosts.values() if host.node != leader.node]
    for other in others:
        cluster.cuts |= {(leader.node, other.node), (other.node, leader.node)}
    for number, other in enumerate(others, 1):
        leader.asked(0, -number, RemoveVoterRequest(other.key))
    cluster.run(3.5)
    leader.propose("alone")
    cluster.run(8.0)
    leader_of(cluster).propose("together")
    cluster.run(9.0)
    return cluster.checker.violations


def wiped_follower(seed: int) -> list[str]:
    """Wipe a disk that a committed record was on: with the one that never had it, it must not elect anybody."""
    cluster = started(seed)
    leader = leader_of(cluster)
    away, wiped = (host for host in cluster.hosts.values() if host.node != leader.node)
    for other in (leader, wiped):
        cluster.cuts |= {(away.node, other.node), (other.node, away.node)}
    leader.propose("committed by two")
    cluster.run(3.4)
    assert cluster.checker.stays.log[-1].value == "committed by two"
    cluster.checker.wiped.dead.add(wiped.key)
    wiped.wipe(cluster.new_directory())
    leader.crash()
    cluster.cuts.clear()
    wiped.start()
    cluster.run(9.0)
    leader.start()
    cluster.run(14.0)
    return cluster.checker.violations


def record_of_an_earlier_epoch(seed: int) -> list[str]:
    """Spread a record of an epoch that is over to a majority (figure 8 of the Raft paper): it may still be lost.

    A leader has it with one follower; another one is elected without it and cut off; the first comes back, and gives it
    to a third node. A majority has it now, and yet the second leader's log counts for more.
    """
    cluster = Cluster(seed, 5, observers=0)
    cluster.batches_max = 1
    for host in cluster.hosts.values():
        host.start()
    cluster.run(3.0)
    first = leader_of(cluster)
    second, *others = (host for host in cluster.hosts.values() if host is not first)
    _part(cluster, [first, second], others)
    offset = first.propose("early")
    assert offset is not None

    def has_early(host: Host) -> bool:
        return host.disk.end > offset and host.disk.at(offset).value == "early"

    cluster.run_until(lambda: has_early(second) and second.disk.flushed > offset, 6.0)
    first.crash()
    cluster.run_until(lambda: any(_leads(host) for host in others), 9.0)
    rival = next((host for host in others if _leads(host)), None)
    assert rival is not None
    third, fourth = (host for host in others if host is not rival)
    for host in (third, fourth, second, first):
        _part(cluster, [rival], [host])
    cluster.run_until(lambda: rival.disk.flushed == rival.disk.end, 10.0)
    cluster.cuts -= {(a, b) for a, b in cluster.cuts if rival.node not in (a, b) and fourth.node not in (a, b)}
    _part(cluster, [fourth], [first, second, third])
    first.start()
    if cluster.run_until(lambda: len(cluster.checker.stays.log) > offset, 25.0) and not has_early(third):
        return cluster.checker.violations  # the third leads, and what it has overtook the record
    for host in (first, second, third):
        host.crash()
    third.start()  # without what was on its way to it
    cluster.cuts.clear()
    cluster.run(cluster.now + 10.0)
    return cluster.checker.violations


def _leads(host: Host) -> bool:
    return host.raft is not None and isinstance(host.raft.role, Leader)


def _part(cluster: Cluster, some: list[Host], others: list[Host]) -> None:
    """Cut two sides off from each other."""
    for one in some:
        for other in others:
            cluster.cuts |= {(one.node, other.node), (other.node, one.node)}
