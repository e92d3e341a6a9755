"""The uniform assignor: as many partitions for each member as for the next, and as few moves as that takes.

    keep what members have -> hand out what is free to whoever has least -> even out

Topics with the same subscribers form a pool: within one, any partition can go to any member. Where all members
subscribe alike there is one pool, and members end up at most one partition apart with the fewest possible moves. Where
pools overlap, each is evened out in turn until none of them can be improved by itself.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, heapreplace
from uuid import UUID

from riverlog.groups.consumer.assignors.subscriber import Partitions, Subscriber
from riverlog.groups.limits import ASSIGNMENT_ROUNDS_MAX

Partition = tuple[UUID, int]


@dataclass(slots=True)
class _Pool:
    """The topics that one set of members subscribes to; members are numbers in the order of their ids."""

    members: tuple[int, ...]
    topics: list[UUID]
    free: list[Partition] = field(default_factory=list)
    owned: defaultdict[int, list[Partition]] = field(default_factory=lambda: defaultdict(list))

    def freedom(self, partition_counts: Mapping[UUID, int]) -> tuple[float, int]:
        """Sort pools with many partitions for few members to the front: others can make up for them."""
        total = sum(partition_counts[topic] for topic in self.topics)
        return -total / len(self.members), len(self.members)


def assign_uniform(subscribers: Sequence[Subscriber], partition_counts: Mapping[UUID, int]) -> dict[str, Partitions]:
    """Spread all partitions evenly over their subscribers, moving as few as possible."""
    ordered = sorted(subscribers, key=lambda each: each.member_id)
    pools = sorted(_pools(ordered), key=lambda each: each.freedom(partition_counts))
    loads = _keep(ordered, pools, partition_counts)
    for pool in pools:
        _hand_out(pool, loads)
    for _ in range(ASSIGNMENT_ROUNDS_MAX):
        if not sum([_even_out(pool, loads) for pool in pools]):
            break
    return _collect(ordered, pools)


def _pools(ordered: list[Subscriber]) -> list[_Pool]:
    by_subscription: defaultdict[frozenset[UUID], list[int]] = defaultdict(list)
    for number, subscriber in enumerate(ordered):
        by_subscription[subscriber.topics].append(number)
    subscriptions = list(by_subscription.items())
    shared_by: defaultdict[UUID, list[int]] = defaultdict(list)
    for index, (topics, _) in enumerate(subscriptions):
        for topic in topics:
            shared_by[topic].append(index)
    topics_by_sharing: defaultdict[tuple[int, ...], list[UUID]] = defaultdict(list)
    for topic in sorted(shared_by):
        topics_by_sharing[tuple(shared_by[topic])].append(topic)
    return [
        _Pool(tuple(sorted(number for index in sharing for number in subscriptions[index][1])), topics)
        for sharing, topics in topics_by_sharing.items()
    ]


def _keep(ordered: list[Subscriber], pools: list[_Pool], partition_counts: Mapping[UUID, int]) -> list[int]:
    """Leave members what they have and may still have, note what is free, and count how much each member holds."""
    loads = [0] * len(ordered)
    taken: set[Partition] = set()
    pool_by_topic = {topic: pool for pool in pools for topic in pool.topics}
    for number, subscriber in enumerate(ordered):
        for topic in sorted(subscriber.topics & subscriber.assigned.keys()):
            for index in sorted(subscriber.assigned[topic]):
                partition = (topic, index)
                if index < partition_counts[topic] and partition not in taken:
                    taken.add(partition)
                    pool_by_topic[topic].owned[number].append(partition)
                    loads[number] += 1
    for pool in pools:
        for topic in pool.topics:
            indexes = range(partition_counts[topic])
            pool.free += [partition for index in indexes if (partition := (topic, index)) not in taken]
    return loads


def _hand_out(pool: _Pool, loads: list[int]) -> None:
    """Assign each free partition to the member that has least."""
    least = [(loads[number], number) for number in pool.members]
    heapify(least)
    for partition in pool.free:
        load, number = least[0]
        pool.owned[number].append(partition)
        loads[number] = load + 1
        heapreplace(least, (load + 1, number))


def _even_out(pool: _Pool, loads: list[int]) -> int:
    """Move partitions of the pool from its fullest members to its emptiest while that helps; count the moves."""
    least = [(loads[number], number) for number in pool.members]
    most = [(-loads[number], number) for number in pool.members if pool.owned[number]]
    heapify(least)
    heapify(most)
    moves = 0
    while most:
        giver, taker = most[0][1], least[0][1]
        if loads[giver] - loads[taker] <= 1:
            break
        # Entries of those who gave or took go stale in the other heap. That is harmless: a giver was the fullest and a
        # taker the emptiest, so neither will ever be two partitions away on the other side.
        pool.owned[taker].append(pool.owned[giver].pop())
        loads[giver] -= 1
        loads[taker] += 1
        moves += 1
        heapreplace(least, (loads[taker], taker))
        heappop(most)
        if pool.owned[giver]:
            heappush(most, (-loads[giver], giver))
    return moves


def _collect(ordered: list[Subscriber], pools: list[_Pool]) -> dict[str, Partitions]:
    indexes: list[defaultdict[UUID, list[int]]] = [defaultdict(list) for _ in ordered]
    for pool in pools:
        for number, partitions in pool.owned.items():
            for topic, index in partitions:
                indexes[number][topic].append(index)
    return {
        subscriber.member_id: {topic: frozenset(found) for topic, found in indexes[number].items()}
        for number, subscriber in enumerate(ordered)
    }
