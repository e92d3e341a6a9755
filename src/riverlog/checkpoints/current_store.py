"""The store that is in use: opened by the first request, and again after it was replaced or lost touch with its topic.

A topic that was deleted is not created again: what was kept is gone, and whoever asks is to know. While requests come,
the topic is looked for every few seconds: the store itself answers much from memory.
"""

import asyncio
from collections.abc import Callable

from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.journal import TopicGone, WriterFenced
from riverlog.checkpoints.limits import CHECKPOINT_TOPIC_CHECKED_SECONDS
from riverlog.checkpoints.store import Store
from riverlog.client.errors import KafkaError
from riverlog.model.ids import TopicId
from riverlog.observe.logging import get_logger


class CurrentStore:
    """Opens the store, and opens another one where that is needed."""

    def __init__(self, make: Callable[[TopicId | None], Store]) -> None:
        """Take what makes a store over the topic with an id; None for the first one."""
        self._make = make
        self._topic_id: TopicId | None = None
        self._checked_at = 0.0
        self._checking: asyncio.Task[None] | None = None
        self._store: Store | None = None
        self._opening = asyncio.Lock()
        self._closed = False

    @property
    def opened(self) -> Store | None:
        """Return the store in use, if there is one."""
        return self._store if self._store is not None and self._store.usable else None

    async def current(self) -> Store:
        """Return a store that can be used, opening one if need be; RequestRefused where the log cannot be reached."""
        if (store := self.opened) is not None:
            self._check(store)
            return store
        async with self._opening:
            if self._store is None or not self._store.usable:
                await self._close_store()
                if self._closed:
                    raise RequestRefused.later("the checkpoint store is stopping; try again")
                self._store = await self._opened()
            return self._store

    async def close(self) -> None:
        """Close the store in use, and open none any more."""
        self._closed = True
        async with self._opening:
            if self._checking is not None:
                self._checking.cancel()
                await asyncio.wait([self._checking])
            await self._close_store()

    def _check(self, store: Store) -> None:
        """Look for the topic if that is due; nobody waits for it."""
        loop = asyncio.get_running_loop()
        is_under_way = self._checking is not None and not self._checking.done()
        if is_under_way or loop.time() - self._checked_at < CHECKPOINT_TOPIC_CHECKED_SECONDS:
            return
        self._checked_at = loop.time()
        self._checking = loop.create_task(store.storage.check_topic())

    async def _opened(self) -> Store:
        store = self._make(self._topic_id)
        try:
            await store.open()
        except TopicGone as problem:
            get_logger("riverlog.checkpoints").error("the checkpoint store lost its topic", cause=problem)
            raise RequestRefused.failed(str(problem)) from problem
        except (KafkaError, RequestRefused, WriterFenced) as problem:
            get_logger("riverlog.checkpoints").warning("the checkpoint store cannot be opened", cause=repr(problem))
            raise RequestRefused.later(f"the checkpoint store cannot reach its topic: {problem}") from problem
        self._topic_id = store.storage.journal.topic_id
        self._checked_at = asyncio.get_running_loop().time()
        return store

    async def _close_store(self) -> None:
        if self._store is not None:
            store, self._store = self._store, None
            await store.close()
