"""The store in use: one at a time, and another one when it cannot go on."""

import asyncio

import pytest

from riverlog import Admin
from riverlog.checkpoints.current_store import CurrentStore
from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.limits import CHECKPOINT_TOPIC_CHECKED_SECONDS
from riverlog.checkpoints.store import store_over
from riverlog.client.errors import Unreachable
from riverlog.model.checkpoint_topic import CHECKPOINTS_TOPIC
from tests.support.checkpoints import MemoryJournal, MemoryTopic, memory_store
from tests.support.members import ADDRESS, a_node


async def test_all_who_ask_get_the_same_one_until_it_fails() -> None:
    topic = MemoryTopic()
    stores = CurrentStore(lambda _: memory_store(topic))
    first, again = await asyncio.gather(stores.current(), stores.current())
    assert first is again
    assert topic.writer == 1
    await first.make_folder("/a")
    assert isinstance(first.storage.journal, MemoryJournal)
    first.storage.journal.fails = True
    with pytest.raises(RequestRefused):
        await first.make_folder("/b")
    second = await stores.current()
    assert second is not first
    assert [each.name for each in second.listing("/")] == ["a"]
    await stores.close()
    with pytest.raises(RequestRefused, match="stopping"):
        await stores.current()


async def test_a_topic_out_of_reach_is_tried_again_with_the_next_request(monkeypatch: pytest.MonkeyPatch) -> None:
    async def out_of_reach(_: MemoryJournal) -> None:
        raise Unreachable("nobody answers")

    topic = MemoryTopic()
    stores = CurrentStore(lambda _: memory_store(topic))
    with monkeypatch.context() as patched:
        patched.setattr(MemoryJournal, "open", out_of_reach)
        with pytest.raises(RequestRefused, match="nobody answers") as refused:
            await stores.current()
        assert refused.value.name == "SafeModeException"
    assert (await stores.current()).usable
    await stores.close()


async def test_a_topic_that_is_deleted_under_the_store_is_an_error_and_not_an_empty_store() -> None:
    async with a_node() as universe:
        stores = CurrentStore(lambda topic_id: store_over(ADDRESS, universe.ports, universe.security, topic_id))
        await (await stores.current()).make_folder("/a")
        async with Admin(ADDRESS, ports=universe.ports, security=universe.security) as admin:
            await admin.delete_topics(CHECKPOINTS_TOPIC)
        await asyncio.sleep(CHECKPOINT_TOPIC_CHECKED_SECONDS)
        began = asyncio.get_running_loop().time()

        async def until_refused() -> None:
            while True:
                (await stores.current()).listing("/")
                await asyncio.sleep(0.1)

        with pytest.raises(RequestRefused, match="was deleted") as refused:
            await until_refused()
        assert not refused.value.is_for_now
        assert asyncio.get_running_loop().time() - began < CHECKPOINT_TOPIC_CHECKED_SECONDS
        await stores.close()


async def test_a_write_under_way_when_the_topic_goes_holds_nobody_up() -> None:
    async with a_node() as universe:
        stores = CurrentStore(lambda topic_id: store_over(ADDRESS, universe.ports, universe.security, topic_id))
        store = await stores.current()
        async with Admin(ADDRESS, ports=universe.ports, security=universe.security) as admin:
            await admin.delete_topics(CHECKPOINTS_TOPIC)
        writing = asyncio.create_task(store.make_folder("/a"))
        await asyncio.sleep(CHECKPOINT_TOPIC_CHECKED_SECONDS)
        await stores.current()
        with pytest.raises(RequestRefused):
            async with asyncio.timeout(CHECKPOINT_TOPIC_CHECKED_SECONDS):
                await writing
        with pytest.raises(RequestRefused, match="was deleted"):
            await stores.current()
        await stores.close()
