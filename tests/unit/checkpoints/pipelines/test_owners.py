"""The owner of a pipeline's batches: takes over, goes on after a restart, and tells what is open."""

import pytest

from riverlog import Member, NewRecord
from riverlog.checkpoints.pipelines.owners import Owners, batch_of
from riverlog.checkpoints.pipelines.pipeline import Announced, AnnouncedWrite, Caller, PipelineState, Prepared
from riverlog.checkpoints.records import FileFacts
from riverlog.client.errors import ProducerFenced
from tests.support.members import ADDRESS, TOPIC, a_node

PATH = "/pipelines/orders"


async def test_another_process_goes_on_in_the_same_name() -> None:
    async with a_node() as universe:
        first, second = (Owners(ADDRESS, ports=universe.ports) for _ in range(2))
        pipeline = PipelineState(Caller("q", "r"), await first.take_over(PATH, "q", timeout_ms=60_000), 0, 0)
        assert await second.open_batch(PATH, pipeline) is None
        batch = batch_of(PATH, pipeline, 0)
        async with Member(ADDRESS, batch, task=0, attempt=0, ports=universe.ports) as member:
            await member.write([NewRecord(TOPIC, b"x")])
            membership = await member.finish()
        assert membership.producer is not None
        assert await second.open_batch(PATH, pipeline) == 0
        prepared = Prepared(Announced(0, (AnnouncedWrite("", (membership.producer,)),)), FileFacts("07", 1, 0))
        assert not await second.is_committed(PATH, pipeline, prepared)
        await second.commit(PATH, pipeline, prepared, ())
        assert await second.is_committed(PATH, pipeline, prepared)
        assert await first.open_batch(PATH, pipeline) is None
        assert not await first.abort(PATH, pipeline, 0)
        assert await first.abort(PATH, pipeline, 1)
        await first.close()
        await second.close()


async def test_who_was_replaced_is_told_so_and_can_still_ask() -> None:
    async with a_node() as universe:
        owners = Owners(ADDRESS, ports=universe.ports)
        old = PipelineState(Caller("q", "old"), await owners.take_over(PATH, "q", timeout_ms=60_000), 0, 0)
        prepared = Prepared(Announced(0, ()), FileFacts("07", 1, 0))
        await owners.take_over(PATH, "q", timeout_ms=60_000)
        with pytest.raises(ProducerFenced):
            await owners.commit(PATH, old, prepared, ())
        with pytest.raises(ProducerFenced):
            await owners.abort(PATH, old, 0)
        assert not await owners.is_committed(PATH, old, prepared)
        await owners.close()
