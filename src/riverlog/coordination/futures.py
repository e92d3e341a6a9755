"""Futures that have ended before anybody can wait, and those whose failure is no fault if nobody does."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")


def answered(answer: T) -> "asyncio.Future[T]":
    """Return a future that has its answer."""
    future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    future.set_result(answer)
    return future


def refused(error: BaseException) -> "asyncio.Future[Any]":
    """Return a future that has failed."""
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    future.set_exception(error)
    _take_note(future)
    return future


def unwatched(future: "asyncio.Future[T]") -> "asyncio.Future[T]":
    """Return a future whose failure is no fault if nobody waits for it: whoever asked may be gone."""
    future.add_done_callback(_take_note)
    return future


async def concluded(future: "asyncio.Future[T]", conclude: "Callable[[asyncio.Future[T]], R]") -> R:
    """Wait for a future, and return what follows from how it ended."""
    await asyncio.wait((future,))
    return conclude(future)


def _take_note(future: "asyncio.Future[Any]") -> None:
    if not future.cancelled():
        future.exception()
