"""What the node keeps for itself: clients see it, and only the node's own store changes it."""

from collections.abc import Awaitable, Callable

import pytest

from riverlog import Admin, Producer, TopicPartition
from riverlog.broker.requests.authorization import AllowEveryone
from riverlog.client.errors import KafkaError
from riverlog.model.access import Operation, Principal, ResourceType
from riverlog.model.checkpoint_topic import CHECKPOINTS_PRINCIPAL, CHECKPOINTS_TOPIC, CHECKPOINTS_TRANSACTIONAL_ID
from riverlog.model.errors import ErrorCode
from tests.support.members import ADDRESS, a_node

FORBIDDEN = ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize(
    ("who", "operation", "resource", "name", "allowed"),
    [
        ("ANONYMOUS", Operation.READ, ResourceType.TOPIC, CHECKPOINTS_TOPIC, True),
        ("ANONYMOUS", Operation.WRITE, ResourceType.TOPIC, CHECKPOINTS_TOPIC, False),
        ("ANONYMOUS", Operation.DELETE, ResourceType.TOPIC, CHECKPOINTS_TOPIC, False),
        ("ANONYMOUS", Operation.ALTER, ResourceType.TOPIC, CHECKPOINTS_TOPIC, False),
        (CHECKPOINTS_PRINCIPAL, Operation.WRITE, ResourceType.TOPIC, CHECKPOINTS_TOPIC, True),
        ("ANONYMOUS", Operation.WRITE, ResourceType.TRANSACTIONAL_ID, CHECKPOINTS_TRANSACTIONAL_ID, False),
        ("ANONYMOUS", Operation.WRITE, ResourceType.TOPIC, CHECKPOINTS_TRANSACTIONAL_ID, True),
        ("ANONYMOUS", Operation.WRITE, ResourceType.TOPIC, "orders", True),
    ],
)
def test_everybody_may_do_everything_else(
    who: str, operation: Operation, resource: ResourceType, name: str, allowed: bool
) -> None:
    assert AllowEveryone().allows(Principal(who, "host"), operation, resource, name) is allowed


async def test_no_client_writes_to_checkpoints_deletes_them_or_locks_the_store_out() -> None:
    async with a_node() as universe:
        async with Admin(ADDRESS, ports=universe.ports) as admin:
            await admin.create_topic(CHECKPOINTS_TOPIC, partitions=2)
            (topic,) = await admin.describe_topics(CHECKPOINTS_TOPIC)
            assert topic.is_internal
            assert CHECKPOINTS_TOPIC not in [each.name for each in await admin.list_topics()]
            await _refused(FORBIDDEN, lambda: admin.delete_topics(CHECKPOINTS_TOPIC))
            await _refused(FORBIDDEN, lambda: admin.create_partitions(CHECKPOINTS_TOPIC, 3))
            await _refused(FORBIDDEN, lambda: admin.delete_records({TopicPartition(CHECKPOINTS_TOPIC, 0): 0}))
        async with Producer(ADDRESS, ports=universe.ports) as producer:
            await _refused(FORBIDDEN, lambda: producer.send(CHECKPOINTS_TOPIC, None, key=b"file:/a", partition=0))
        thief = Producer(ADDRESS, transactional_id=CHECKPOINTS_TRANSACTIONAL_ID, ports=universe.ports)
        await _refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, thief.start)
        other = Producer(ADDRESS, transactional_id="another", ports=universe.ports)
        await other.start()
        await other.begin()
        await _refused(FORBIDDEN, lambda: other.send(CHECKPOINTS_TOPIC, None, key=b"file:/a", partition=0))
        await other.close()
        own = Producer(ADDRESS, ports=universe.ports, security=universe.security)
        async with own:
            assert (await own.send(CHECKPOINTS_TOPIC, None, key=b"file:/a", partition=0)).offset == 0


async def _refused(code: ErrorCode, ask: Callable[[], Awaitable[object]]) -> None:
    with pytest.raises(KafkaError) as refused:
        await ask()
    assert refused.value.code is code


async def test_no_client_ends_a_transaction_of_the_store() -> None:
    async with a_node() as universe:
        store = Producer(
            ADDRESS,
            transactional_id=CHECKPOINTS_TRANSACTIONAL_ID,
            ports=universe.ports,
            security=universe.security,
        )
        partition = TopicPartition(CHECKPOINTS_TOPIC, 1)
        async with Admin(ADDRESS, ports=universe.ports) as admin, store:
            await admin.create_topic(CHECKPOINTS_TOPIC)
            await store.begin()
            await store.send(CHECKPOINTS_TOPIC, b"1", key=b"chunk:07:0", partition=1)
            (open_one,) = [each for each in await admin.describe_producers([partition]) if each.transaction_offset >= 0]
            await _refused(FORBIDDEN, lambda: admin.abort_in_partition(open_one))
            await store.commit()
