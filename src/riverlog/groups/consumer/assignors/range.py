"""The range assignor: neighbouring partitions of each topic go to the same member.

Topics with as many partitions and the same subscribers are divided alike, so that partition n of each of them lies with
one member and can be joined there. What members had before plays no part: order alone decides, static members first,
since their names outlive a restart.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from uuid import UUID

from riverlog.groups.consumer.assignors.subscriber import Partitions, Subscriber


def assign_range(subscribers: Sequence[Subscriber], partition_counts: Mapping[UUID, int]) -> dict[str, Partitions]:
    """Cut each topic into as many runs as it has subscribers, the longer ones in front."""
    assigned: dict[str, dict[UUID, frozenset[int]]] = {each.member_id: {} for each in subscribers}
    readers: defaultdict[UUID, list[str]] = defaultdict(list)
    for subscriber in sorted(subscribers, key=_order):
        for topic in subscriber.topics:
            readers[topic].append(subscriber.member_id)
    for topic, members in readers.items():
        share, longer = divmod(partition_counts[topic], len(members))
        start = 0
        for index, member in enumerate(members[: partition_counts[topic]]):
            end = start + share + (index < longer)
            assigned[member][topic] = frozenset(range(start, end))
            start = end
    return {**assigned}


def _order(subscriber: Subscriber) -> tuple[bool, str]:
    return subscriber.instance_id is None, subscriber.instance_id or subscriber.member_id
