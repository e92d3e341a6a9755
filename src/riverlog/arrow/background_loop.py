"""An event loop in a thread of its own, for callers that have none or may not wait in theirs, as in a notebook."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")


class BackgroundLoop:
    """Runs coroutines beside the caller. What they start goes on between two calls; use it as a context manager."""

    def __init__(self, name: str) -> None:
        self._started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live()), name=name, daemon=True)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there and wait for it here; one that is no longer waited for is cancelled."""
        loop, _ = self._started.result()
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    async def _live(self) -> None:
        ended = asyncio.Event()
        self._started.set_result((asyncio.get_running_loop(), ended))
        await ended.wait()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        loop, ended = self._started.result()
        loop.call_soon_threadsafe(ended.set)
        self._thread.join()
