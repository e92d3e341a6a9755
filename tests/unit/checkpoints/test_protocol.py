"""Heads of requests, on a real socket."""

import asyncio
import socket
import time

from riverlog.checkpoints.protocol import HEAD_BYTES_MAX
from riverlog.checkpoints.server import CheckpointServer


def test_a_head_that_does_not_end_is_refused() -> None:
    def talk(port: int) -> tuple[int, bytes]:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
            client.sendall(b"GET /webhdfs/v1/?op=LISTSTATUS HTTP/1.1\r\nHost: x\r\na: ")
            sent = 0
            try:
                while sent < 100 * HEAD_BYTES_MAX:
                    sent += client.send(b"b" * 1024)
                    time.sleep(0.001)
            except OSError:
                pass
            try:
                return sent, client.recv(1024)
            except ConnectionResetError:
                return sent, b" 400 "

    async def scenario() -> None:
        server = CheckpointServer("127.0.0.1:1")
        address = server.open("127.0.0.1", 0)
        sent, heard = await asyncio.to_thread(talk, address.port)
        assert sent < 50 * HEAD_BYTES_MAX
        assert b" 400 " in heard
        await server.close()

    asyncio.run(scenario())
