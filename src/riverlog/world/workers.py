"""Threads for work that blocks, above all waiting for the disk."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class ThreadWorkers:
    """The Workers port over a bounded pool of threads, started when first needed."""

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="riverlog-worker")

    def run(self, work: Callable[[], T]) -> Awaitable[T]:
        return asyncio.get_running_loop().run_in_executor(self._pool, work)

    def close(self) -> None:
        """Wait for work under way and end the threads."""
        self._pool.shutdown(wait=True)
