"""The store that is in use: opened by the first request, and again after it was replaced or lost its topic."""

import asyncio
from collections.abc import Callable

from riverlog.checkpoints.journal import Replaced
from riverlog.checkpoints.refusals import Refused
from riverlog.checkpoints.store import Store
from riverlog.client.errors import KafkaError
from riverlog.observe.logging import get_logger


class Stores:
    """Gives the store to whoever asks."""

    def __init__(self, make: Callable[[], Store]) -> None:
        self._make = make
        self._store: Store | None = None
        self._opening = asyncio.Lock()
        self._closed = False

    @property
    def opened(self) -> Store | None:
        """Give the store in use, if there is one."""
        return self._store if self._store is not None and self._store.usable else None

    async def current(self) -> Store:
        """Give a store that can be used; Refused where the log cannot be reached."""
        if (store := self.opened) is not None:
            return store
        async with self._opening:
            if self._store is None or not self._store.usable:
                await self._let_go()
                if self._closed:
                    raise Refused.later("the checkpoint store is stopping; try again")
                self._store = await self._opened()
            return self._store

    async def close(self) -> None:
        """Close the store in use, and open none any more."""
        self._closed = True
        async with self._opening:
            await self._let_go()

    async def _opened(self) -> Store:
        store = self._make()
        try:
            await store.open()
        except (KafkaError, Refused, Replaced) as problem:
            get_logger("riverlog.checkpoints").warning("the checkpoint store cannot be opened", cause=repr(problem))
            raise Refused.later(f"the checkpoint store cannot reach its topic: {problem}") from problem
        return store

    async def _let_go(self) -> None:
        if self._store is not None:
            store, self._store = self._store, None
            await store.close()
