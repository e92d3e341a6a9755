"""Transactions in a circle: an order of which no log can be the record.

One transaction comes before another if the other was given a record that it wrote, or if one client did both, one after
the other. Who wrote behind whom is left out: transactions do not keep one another from writing, in Kafka as here.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise

from riverlog.verify.anomalies import Cycle
from riverlog.verify.evidence import Evidence
from riverlog.verify.history import Transaction

Followers = Mapping[Transaction, set[Transaction]]


def cycles(evidence: Evidence) -> Iterator[Cycle]:
    """Return for each transaction that comes before itself a shortest way around, unless it is on one given before."""
    followers = _followers(evidence)
    known: set[Transaction] = set()
    for transaction in sorted(_without_an_order(followers), key=lambda each: each.began):
        around = () if transaction in known else _way_back(transaction, followers)
        if around:
            known.update(around)
            yield Cycle(tuple(each.name for each in around))


def _followers(evidence: Evidence) -> Followers:
    followers: dict[Transaction, set[Transaction]] = {transaction: set() for transaction in evidence.committed}
    writes = {partition.name: partition.writes for partition in evidence.partitions}
    of_client: dict[str, list[Transaction]] = {}
    for transaction in sorted(followers, key=lambda each: each.began):
        of_client.setdefault(transaction.client, []).append(transaction)
        for partition, value in transaction.read:
            write = writes.get(partition, {}).get(value)
            if write is not None and write.transaction in followers and write.transaction is not transaction:
                followers[write.transaction].add(transaction)
    for transactions in of_client.values():
        for first, second in pairwise(transactions):
            followers[first].add(second)
    return followers


def _without_an_order(followers: Followers) -> set[Transaction]:
    """Take away, again and again, what nothing comes before; what is left is in a cycle or behind one."""
    before = Counter(after for afters in followers.values() for after in afters)
    free = [transaction for transaction in followers if not before[transaction]]
    left = {*followers}
    while free:
        transaction = free.pop()
        left.remove(transaction)
        for after in followers[transaction]:
            before[after] -= 1
            if not before[after]:
                free.append(after)
    return left


def _way_back(start: Transaction, followers: Followers) -> tuple[Transaction, ...]:
    """Find a shortest way from a transaction to itself; give its stations, none if there is no way."""
    came_from: dict[Transaction, Transaction] = {}
    reached = [start]
    for transaction in reached:
        for after in sorted(followers[transaction], key=lambda each: each.began):
            if after is start:
                way = [transaction]
                while way[-1] is not start:
                    way.append(came_from[way[-1]])
                return tuple(reversed(way))
            if after not in came_from:
                came_from[after] = transaction
                reached.append(after)
    return ()
