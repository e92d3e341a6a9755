"""The port: bound at once, and nothing else done before the first client comes."""

import asyncio
import http.client
import socket
import subprocess
import sys

import pytest

from riverlog.checkpoints.server import CheckpointServer
from riverlog.observe.web_guard import WebGuard


def test_a_port_that_nobody_uses_costs_nothing_but_the_port() -> None:
    async def scenario() -> None:
        server = CheckpointServer("127.0.0.1:1", WebGuard())
        address = server.open("127.0.0.1", 0)
        with pytest.raises(OSError, match="in use"):
            CheckpointServer("127.0.0.1:1", WebGuard()).open("127.0.0.1", address.port)
        await server.close()
        await server.close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((address.host, address.port))

    asyncio.run(scenario())


def test_the_first_client_is_answered() -> None:
    def ask(port: int, target: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", target)
        answer = connection.getresponse()
        assert answer.getheader("Content-Type") is None
        body = answer.read()
        connection.close()
        return answer.status, body

    async def scenario() -> None:
        server = CheckpointServer("127.0.0.1:1", WebGuard())
        address = server.open("127.0.0.1", 0)
        status, body = await asyncio.to_thread(ask, address.port, "/webhdfs/v1/?op=LISTSTATUS")
        assert status == 403
        assert b"SafeModeException" in body  # no node is there
        await server.close()

    asyncio.run(scenario())


def test_a_node_that_serves_no_checkpoints_loads_nothing_of_them() -> None:
    loaded = "any(m.startswith(('uvicorn', 'riverlog.checkpoints')) for m in sys.modules)"
    code = f"import riverlog.node, sys; sys.exit({loaded})"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
