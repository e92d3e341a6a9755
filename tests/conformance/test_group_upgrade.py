"""A group is rolled over from the classic to the consumer protocol and back while records keep coming."""

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, Producer

from tests.conformance.adapters import Deadline

PARTITIONS = 6
STRATEGIES = ("range", "cooperative-sticky")


class RollingGroup:
    """Members of both kinds, polled in turn; each record that any of them sees is committed before the next poll."""

    def __init__(self, bootstrap: str, group: str, topic: str, strategy: str) -> None:
        self.common = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": True,
            "auto.commit.interval.ms": 100,
        }
        self.classic = {
            "group.protocol": "classic",
            "partition.assignment.strategy": strategy,
            "heartbeat.interval.ms": 300,
            "session.timeout.ms": 10_000,
        }
        self.topic = topic
        self.members: dict[str, Consumer] = {}
        self.producer = Producer({"bootstrap.servers": bootstrap})
        self.sent = 0
        self.seen: set[bytes] = set()

    def join(self, name: str) -> None:
        """Add a member; names in capitals speak the consumer protocol."""
        protocol = {"group.protocol": "consumer"} if name.isupper() else self.classic
        self.members[name] = Consumer({**self.common, **protocol, "client.id": name})
        self.members[name].subscribe([self.topic])
        self._settle()

    def leave(self, *names: str) -> None:
        for name in names:
            self.members.pop(name).close()
        self._settle()

    def _settle(self) -> None:
        """Poll until every partition has one reader, everybody has a fair share, and all that was sent is seen."""
        deadline = Deadline(60)
        while deadline.left():
            if self.sent % 3 == 0 or not self._is_fair():
                self.producer.produce(self.topic, b"%d" % self.sent, partition=self.sent % PARTITIONS)
                self.sent += 1
            for member in self.members.values():
                message = member.poll(0.02)
                if message is not None:
                    assert message.error() is None, message.error()
                    self.seen.add(message.value())
            if self._is_fair() and len(self.seen) == self.sent:
                return
            self.producer.poll(0)
        raise AssertionError(f"{self._shares()}, {len(self.seen)} of {self.sent} records seen")

    def _is_fair(self) -> bool:
        shares = self._shares()
        assert sum(map(len, shares)) == len(set().union(*shares)), f"a partition has two readers: {shares}"
        sizes = [len(share) for share in shares]
        return sum(sizes) == PARTITIONS and max(sizes) - min(sizes) <= 1

    def _shares(self) -> list[set[int]]:
        return [{each.partition for each in member.assignment()} for member in self.members.values()]

    def close(self) -> None:
        self.producer.flush(10)
        for member in self.members.values():
            member.close()


@pytest.fixture(params=STRATEGIES)
def group(request: pytest.FixtureRequest, bootstrap: str, new_topic: Callable[..., str]) -> Iterator[RollingGroup]:
    topic = new_topic(partitions=PARTITIONS)
    group = RollingGroup(bootstrap, f"group-of-{topic}", topic, request.param)
    yield group
    group.close()


def test_members_change_their_protocol_one_by_one_and_no_record_is_missed(group: RollingGroup) -> None:
    group.join("a")
    group.join("b")
    group.join("A")
    group.leave("a")
    group.join("B")
    group.leave("b")
    group.join("c")
    group.leave("A", "B")
    group.join("d")
