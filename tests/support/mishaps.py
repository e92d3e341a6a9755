"""What happens to a client's requests on their way to a node."""

import asyncio
from typing import Any

import pytest

from riverlog.client.errors import Unreachable
from riverlog.client.network.connection import Connection


class Mishaps:
    """Requests whose answers are lost on the way, or that are never sent, and all that was sent."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lost: list[type] = []
        self.unsent: list[type] = []
        self.sent: list[object] = []
        send = Connection.send

        def sending(connection: Connection, message: object, **how: Any) -> "asyncio.Future[Any]":
            gone: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            if type(message) in self.unsent:
                self.unsent.remove(type(message))
                gone.set_exception(Unreachable("the request was lost"))
                return gone
            self.sent.append(message)
            answer = send(connection, message, **how)
            if type(message) not in self.lost:
                return answer
            self.lost.remove(type(message))
            answer.add_done_callback(lambda _: gone.set_exception(Unreachable("the answer was lost")))
            return gone

        monkeypatch.setattr(Connection, "send", sending)

    def count(self, kind: type) -> int:
        return sum(isinstance(message, kind) for message in self.sent)
