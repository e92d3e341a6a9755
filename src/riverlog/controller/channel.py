"""The way to the active controller, wherever it is: found through the quorum, asked again where it has changed.

A request that was not taken is sent to whoever leads next, until its time is up. One whose response was lost may have
been carried out: it is sent again only where that does no harm.
"""

import asyncio
from typing import Any, Final

from riverlog.controller.log import OutcomeUnknown
from riverlog.controller.peers import Lane, Peers
from riverlog.controller.quorum import MetadataQuorum
from riverlog.controller.quorum_ports import NoResponse, Unsupported
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import Address

_TRY_AGAIN_SECONDS: Final = 0.02
_LOOK_SECONDS: Final = 0.05
"""How often is looked whether another controller leads while one has not answered."""
FORWARDED_SECONDS: Final = 30.0
"""How long a request is tried that a client waits for."""


class NoController(Refusal):
    """No active controller was found in time. Nothing was done."""

    def __init__(self, reason: str) -> None:
        super().__init__(ErrorCode.REQUEST_TIMED_OUT, f"No active controller has answered: {reason}. Try again later.")


class _Lost(Exception):
    """A request was sent, and there is no response."""


class ControllerChannel:
    """Sends requests to the active controller."""

    def __init__(self, quorum: MetadataQuorum, peers: Peers) -> None:
        self._quorum = quorum
        self._peers = peers

    async def ask(self, message: object, lane: Lane, *, repeatable: bool, seconds: float = FORWARDED_SECONDS) -> Any:
        """Return the response of the active controller.

        Raises NoController where nobody took the request in time, and OutcomeUnknown where somebody may have; what is
        `repeatable` is sent again instead.
        """
        loop = asyncio.get_running_loop()
        ends_at, reason = loop.time() + seconds, "nobody is known to lead"
        while (left := ends_at - loop.time()) > 0:
            address = self._quorum.leader_address
            try:
                if address is not None:
                    response = await self._ask(address, message, lane, left)
                    if not _is_from_another(response):
                        return response
                    reason = f"{address} does not lead any more"
            except _Lost as error:
                if not repeatable:
                    raise OutcomeUnknown from error
                reason = str(error)
            except Unsupported as error:
                raise NoController(str(error)) from error
            except NoResponse as error:
                reason = str(error)
            await asyncio.sleep(_TRY_AGAIN_SECONDS)
        raise NoController(reason)

    async def _ask(self, address: Address, message: object, lane: Lane, seconds: float) -> Any:
        """Ask this controller, for as long as it is the one that leads; _Lost where it may have done what was asked."""
        connection = await self._peers.connection(address, lane)
        asking = asyncio.ensure_future(self._peers.send(connection, message, seconds))
        try:
            while not asking.done() and self._quorum.leader_address in (address, None):
                await asyncio.wait({asking}, timeout=_LOOK_SECONDS)
            if not asking.done():
                raise _Lost(f"{address} leads no more, and has not answered")
            return await asking
        except Unsupported:
            raise
        except NoResponse as error:
            raise _Lost(str(error)) from error
        finally:
            asking.cancel()


def _is_from_another(response: Any) -> bool:
    """Return whether the response says, as a whole or of its first part, that its sender does not lead any more."""
    parts = getattr(response, "topics", ())
    whole = response if hasattr(response, "error_code") else next(iter(parts), None)
    return whole is not None and whole.error_code == ErrorCode.NOT_CONTROLLER
