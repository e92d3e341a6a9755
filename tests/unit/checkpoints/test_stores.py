"""The store in use: one at a time, and another one when it cannot go on."""

import asyncio

import pytest

from riverlog.checkpoints.refusals import Refused
from riverlog.checkpoints.stores import Stores
from riverlog.client.errors import Unreachable
from tests.support.checkpoints import MemoryJournal, MemoryTopic, memory_store
from tests.support.virtual_time import run


def test_all_who_ask_get_the_same_one_until_it_fails() -> None:
    async def scenario() -> None:
        topic = MemoryTopic()
        stores = Stores(lambda: memory_store(topic))
        first, again = await asyncio.gather(stores.current(), stores.current())
        assert first is again
        assert topic.writer == 1
        await first.make_folder("/a")
        assert isinstance(first.journal, MemoryJournal)
        first.journal.fails = True
        with pytest.raises(Refused):
            await first.make_folder("/b")
        second = await stores.current()
        assert second is not first
        assert [each.name for each in second.listing("/")] == ["a"]
        await stores.close()
        with pytest.raises(Refused, match="stopping"):
            await stores.current()

    run(scenario())


def test_a_topic_out_of_reach_is_tried_again_with_the_next_request(monkeypatch: pytest.MonkeyPatch) -> None:
    async def out_of_reach(_: MemoryJournal) -> None:
        raise Unreachable("nobody answers")

    async def scenario() -> None:
        topic = MemoryTopic()
        stores = Stores(lambda: memory_store(topic))
        with monkeypatch.context() as patched:
            patched.setattr(MemoryJournal, "open", out_of_reach)
            with pytest.raises(Refused, match="nobody answers") as refused:
                await stores.current()
            assert refused.value.name == "SafeModeException"
        assert (await stores.current()).usable
        await stores.close()

    run(scenario())
