"""What the client's objects have in common: they are started, used and closed, best by `async with`."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Startable(ABC):
    """Something that reaches the cluster with `start` and lets go of it with `close`."""

    @abstractmethod
    async def start(self) -> Self:
        """Reach the cluster."""

    @abstractmethod
    async def close(self) -> None:
        """Release all connections."""

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await self.close()
