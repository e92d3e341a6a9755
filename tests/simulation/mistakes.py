"""Mistakes of our own as a fault: a handler raises what nobody expects, before its work or after it.

A node has to survive each: one answer or one connection is lost, and nothing that was acknowledged. What an exception
left half-done is met by all requests behind it.
"""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from riverlog.broker.handlers import load_handler
from riverlog.broker.requests.context import Later
from riverlog.wire.apis import ApiKey


class Mistake(Exception):
    """Stands for any bug."""


class Mistakes:
    """Lets a later request of a node's meet a mistake. `counts` requests, over all lives of the node."""

    def __init__(self) -> None:
        self._due_in: int | None = None
        self._late = False

    def expect(self, after: int, *, late: bool) -> None:
        """Make the request behind the next `after` ones fail, at the end of its work if `late`."""
        self._due_in, self._late = after, late

    def forget(self) -> None:
        """Make none that is still to come."""
        self._due_in = None

    def load_handler(self, key: ApiKey) -> Any:
        """Load a handler that makes the mistake that is due."""
        handler, short_cut = load_handler(key)
        return self._wrong(handler), None if short_cut is None else self._wrong(short_cut)

    def _wrong(self, work: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(work):

            @wraps(work)
            async def awaited(*given: Any) -> Any:
                is_due = self._is_due()
                if is_due and not self._late:
                    raise Mistake
                result = await work(*given)
                if is_due:
                    raise Mistake
                return result

            return awaited

        @wraps(work)
        def done(*given: Any) -> Any:
            is_due = self._is_due()
            if is_due and not self._late:
                raise Mistake
            result = work(*given)
            if is_due:
                if isinstance(result, Later):
                    return Later(_failing(result))
                raise Mistake
            return result

        return done

    def _is_due(self) -> bool:
        if self._due_in is None:
            return False
        self._due_in -= 1
        if self._due_in >= 0:
            return False
        self._due_in = None
        return True


async def _failing(later: Later[Any]) -> Any:
    await later.response
    raise Mistake
