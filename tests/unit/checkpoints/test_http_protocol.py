"""Heads of requests, on a real socket."""

import asyncio
import socket

from riverlog.checkpoints.http_protocol import HEAD_BYTES_MAX
from riverlog.checkpoints.server import CheckpointServer
from riverlog.observe.web_guard import WebGuard


def test_a_head_that_does_not_end_is_refused() -> None:
    def talk(port: int) -> bytes:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
            client.sendall(
                b"GET /webhdfs/v1/?op=LISTSTATUS HTTP/1.1\r\nHost: localhost\r\na: " + b"b" * (2 * HEAD_BYTES_MAX)
            )
            try:
                return client.recv(1024)
            except ConnectionResetError:  # it hung up before it had read all
                return b" 400 "

    async def scenario() -> None:
        server = CheckpointServer("127.0.0.1:1", WebGuard())
        address = server.open("127.0.0.1", 0)
        assert b" 400 " in await asyncio.to_thread(talk, address.port)
        await server.close()

    asyncio.run(scenario())
