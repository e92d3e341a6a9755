"""AddPartitionsToTxn: of clients, and of brokers that ask for many."""

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.model.internal_topics import TRANSACTIONS_TOPIC
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from riverlog.wire.messages.init_producer_id import InitProducerIdResponse
from tests.support.asking import Line, serving
from tests.support.coordinator_lines import ID, add, described, end, init, prepared
from tests.support.denial import deny


@pytest.mark.parametrize("version", range(4))
async def test_every_version_of_clients_adds_partitions(version: int) -> None:
    async with serving(num_partitions="3") as (line, _node):
        await prepared(line, "t", "u")
        producer = await init(line)
        assert await add(line, producer, 0, 2, version=version) == [ErrorCode.NONE] * 2
        assert await add(line, producer, 1, topic="u", version=version) == [ErrorCode.NONE]
        state = await described(line)
        assert state.transaction_state == "Ongoing"
        assert [(each.topic, each.partitions) for each in state.topics] == [("t", [0, 2]), ("u", [1])]


async def test_one_partition_that_cannot_be_added_keeps_out_the_others() -> None:
    async with serving() as (line, _node):
        await prepared(line, "t")
        producer = await init(line)
        unknown, skipped = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED
        assert await add(line, producer, 0, 1, -1) == [skipped, unknown, unknown]
        assert await add(line, producer, topic="nowhere") == [unknown]
        internal = await add(line, producer, topic=TRANSACTIONS_TOPIC)
        assert internal == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
        assert (await described(line)).transaction_state == "Empty"


@pytest.mark.parametrize(("version", "code"), [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, ErrorCode.PRODUCER_FENCED)])
async def test_a_zombie_is_told_so_in_words_that_it_knows(version: int, code: ErrorCode) -> None:
    async with serving() as (line, _node):
        await prepared(line, "t")
        old = await init(line)
        await init(line)
        assert await add(line, old, version=version) == [code]


async def test_without_a_coordinator_or_a_name_there_is_no_transaction() -> None:
    async with serving() as (line, _node):
        await prepared(line, "t")
        nobody = InitProducerIdResponse(producer_id=9)
        assert await add(line, nobody) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]
        nameless = AddPartitionsToTxnRequest(v3_and_below_topics=[AddPartitionsToTxnTopic("t", [0])])
        response = await line.ask(ApiKey.ADD_PARTITIONS_TO_TXN, 3, nameless)
        (topic,) = response.results_by_topic_v3_and_below
        assert topic.results_by_partition[0].partition_error_code == ErrorCode.INVALID_REQUEST


async def ask_as_broker(line: Line, *transactions: AddPartitionsToTxnTransaction, version: int = 5) -> list[list[int]]:
    request = AddPartitionsToTxnRequest(transactions=list(transactions))
    response = await line.ask(ApiKey.ADD_PARTITIONS_TO_TXN, version, request)
    assert response.error_code == ErrorCode.NONE
    return [
        [each.partition_error_code for topic in result.topic_results for each in topic.results_by_partition]
        for result in response.results_by_transaction
    ]


@pytest.mark.parametrize("version", [4, 5])
async def test_brokers_ask_for_many_transactions_and_may_only_want_to_know(version: int) -> None:
    async with serving(num_partitions="2") as (line, _node):
        await prepared(line, "t")
        one = await init(line)
        other = await init(line, transactional_id="other")

        def asked(name: str, producer: InitProducerIdResponse, *, only: bool) -> AddPartitionsToTxnTransaction:
            topics = [AddPartitionsToTxnTopic("t", [0, 1])]
            return AddPartitionsToTxnTransaction(name, producer.producer_id, producer.producer_epoch, only, topics)

        no = ErrorCode.TRANSACTION_ABORTABLE
        assert await ask_as_broker(
            line, asked(ID, one, only=False), asked("other", other, only=True), version=version
        ) == [[ErrorCode.NONE] * 2, [no] * 2]
        assert await ask_as_broker(line, asked(ID, one, only=True), version=version) == [[ErrorCode.NONE] * 2]
        assert await ask_as_broker(line, version=version) == []
        assert (await end(line, one)).error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", [3, 5])
async def test_not_everybody_may_add_partitions(monkeypatch: pytest.MonkeyPatch, version: int) -> None:
    deny(monkeypatch, Operation.WRITE, Operation.CLUSTER_ACTION)
    async with serving() as (line, _node):
        await prepared(line, "t")
        if version < 4:
            codes = await add(line, InitProducerIdResponse(producer_id=9), version=version)
            assert codes == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
        else:
            response = await line.ask(ApiKey.ADD_PARTITIONS_TO_TXN, version, AddPartitionsToTxnRequest())
            assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
