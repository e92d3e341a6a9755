"""Blocks of producer ids for brokers."""

from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from tests.support.clusters import controller_line
from tests.support.virtual_time import run


def test_each_block_is_given_out_once_and_to_brokers_alone() -> None:
    async def scenario() -> None:
        async with controller_line() as (line, cluster):
            epoch = cluster.nodes[1].controller.image.brokers[4].epoch
            blocks = [
                await line.ask(ApiKey.ALLOCATE_PRODUCER_IDS, 0, AllocateProducerIdsRequest(4, epoch)) for _ in "ab"
            ]
            assert [(each.producer_id_start, each.producer_id_len) for each in blocks] == [(0, 1000), (1000, 1000)]
            stale = await line.ask(ApiKey.ALLOCATE_PRODUCER_IDS, 0, AllocateProducerIdsRequest(4, epoch - 1))
            assert stale.error_code == ErrorCode.STALE_BROKER_EPOCH
            unknown = await line.ask(ApiKey.ALLOCATE_PRODUCER_IDS, 0, AllocateProducerIdsRequest(9, epoch))
            assert unknown.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED

    run(scenario())
