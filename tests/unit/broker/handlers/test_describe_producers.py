"""DescribeProducers: whoever wrote with a producer id is remembered."""

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from riverlog.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from riverlog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support.asking import serving
from tests.support.batches import batch_of
from tests.support.denial import deny


async def test_a_partition_names_its_producers() -> None:
    async with serving() as (line, _node):
        await line.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([CreatableTopic("t", 2)]))
        batches = [
            batch_of([b"a", b"b"], producer_id=7, producer_epoch=3, base_sequence=0),
            batch_of([b"c"], producer_id=7, producer_epoch=3, base_sequence=2),
        ]
        for batch in batches:
            part = PartitionProduceData(index=1, records=batch)
            produce = ProduceRequest(
                acks=-1, timeout_ms=1_000, topic_data=[TopicProduceData("t", partition_data=[part])]
            )
            await line.ask(ApiKey.PRODUCE, 12, produce)
        asked = DescribeProducersRequest([TopicRequest("t", [0, 1, 2])])
        (topic,) = (await line.ask(ApiKey.DESCRIBE_PRODUCERS, 0, asked)).topics
        silent, written, missing = topic.partitions
        assert (silent.error_code, silent.active_producers) == (ErrorCode.NONE, [])
        (producer,) = written.active_producers
        assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (7, 3, 2)
        assert producer.current_txn_start_offset == -1
        assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_not_everybody_may_see_producers(monkeypatch: pytest.MonkeyPatch) -> None:
    deny(monkeypatch, Operation.READ)
    async with serving() as (line, _node):
        asked = DescribeProducersRequest([TopicRequest("t", [0])])
        (topic,) = (await line.ask(ApiKey.DESCRIBE_PRODUCERS, 0, asked)).topics
        assert topic.partitions[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
