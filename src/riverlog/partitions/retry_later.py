"""Requests that cannot be done yet and come again: nothing of them has been done when this is raised."""

import asyncio


class RetryLater(Exception):
    """A request has to come again; `until` is done when it is worth it."""

    def __init__(self, until: "asyncio.Future[None]") -> None:
        super().__init__("this cannot be done yet")
        self.until = until
