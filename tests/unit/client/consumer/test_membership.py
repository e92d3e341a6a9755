"""Between a member's task and its reader: nothing is taken away, everything is handed over."""

import asyncio
from collections.abc import Callable
from uuid import UUID

from riverlog.client.consumer.commits import OUTSIDE, Identity
from riverlog.client.consumer.membership import NOTHING, GroupMembership, GroupRules, Interest
from riverlog.client.errors import KafkaError
from riverlog.client.network.cluster import Cluster, Topic
from riverlog.client.network.coordinator import GroupCoordinator
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicId, TopicPartition

RULES = GroupRules("billing", None, None, 6_000, 500, 10_000)
ONE = frozenset({TopicPartition("orders", 0)})


class Quiet(GroupMembership):
    """A member that does what the test tells it to."""

    act: Callable[["Quiet"], None] = staticmethod(lambda _member: None)

    @property
    def identity(self) -> Identity:
        return OUTSIDE

    async def leave(self) -> None: ...

    async def _take_part(self) -> None:
        self.act(self)
        await asyncio.sleep(3_600)


def a_member(signals: list[float]) -> Quiet:
    cluster = Cluster("node:9092")
    loop = asyncio.get_running_loop()
    coordinator = GroupCoordinator(cluster, "billing")
    return Quiet(cluster, coordinator, RULES, Interest(), lambda: signals.append(loop.time()))


async def test_a_target_is_taken_in_hand_once() -> None:
    signals: list[float] = []
    member = a_member(signals)
    member._offer(ONE)
    assert member.wants_reader
    assert member.begin() == ONE
    assert not member.wants_reader
    member.applied(ONE)
    member._offer(ONE)  # the reader has it already
    assert not member.wants_reader
    assert len(signals) == 1


async def test_a_loss_voids_the_target_and_is_told_even_while_one_is_being_applied() -> None:
    member = a_member([])
    member._lose()
    assert not member.wants_reader  # there was nothing to lose
    member._offer(ONE)
    assert member.begin() == ONE
    member._lose()
    assert member.lost
    assert member.target is None
    member.told()
    member.applied(NOTHING)
    assert not member.wants_reader


async def test_what_trying_again_does_not_mend_waits_until_the_reader_knows() -> None:
    attempts: list[float] = []

    def refused(_member: Quiet) -> None:
        attempts.append(asyncio.get_running_loop().time())
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED, "no")

    member = a_member([])
    member.act = refused
    running = asyncio.create_task(member.run())
    await asyncio.sleep(60)
    assert len(attempts) == 1
    assert member.problem is not None
    member.told()
    await asyncio.sleep(60)
    assert len(attempts) == 2
    running.cancel()


async def test_a_reader_is_overdue_only_while_it_works() -> None:
    member = a_member([])
    await asyncio.sleep(11)
    assert member._overdue
    member.reader_waits = True
    assert not member._overdue
    member.reader_waits = False
    member.polled()
    assert not member._overdue


async def test_a_pattern_means_whole_names_and_no_internal_topics() -> None:
    cluster = Cluster("node:9092")
    for number, name in enumerate(("orders", "old-orders", "__orders")):
        topic_id = TopicId(UUID(int=number))
        cluster.topics[name] = Topic(name, topic_id, (), is_internal=name.startswith("__"))
    assert Interest(pattern=".*orders").among(cluster) == {"orders", "old-orders"}
    assert Interest(pattern="orders").among(cluster) == {"orders"}
    assert Interest(frozenset({"gone"})).among(cluster) == {"gone"}
