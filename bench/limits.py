"""What the machine itself can do, measured beside the brokers: its disk and its loopback.

Both are plain loops around one system call with large buffers, so the interpreter is no part of the result.
"""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from bench.trial import Failed

LOOPBACK_CHUNK_BYTES: Final = 1 << 20
CONNECT_SECONDS_MAX: Final = 10
SENDER: Final = """
import socket, sys, time
chunk = memoryview(bytes(int(sys.argv[3])))
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
    deadline = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < deadline:
        connection.sendall(chunk)
"""


def disk_bytes_per_second(folder: Path, *, chunk_bytes: int, chunks_per_flush: int, seconds: float) -> float:
    """Write a new file in chunks, one behind the other, with an fdatasync behind every so many of them."""
    path = folder / "disk"
    chunk = os.urandom(chunk_bytes)
    written = 0
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    try:
        begin = time.monotonic()
        while time.monotonic() - begin < seconds:
            for _ in range(chunks_per_flush):
                written += os.pwrite(descriptor, chunk, written)
            os.fdatasync(descriptor)
        return written / (time.monotonic() - begin)
    finally:
        os.close(descriptor)
        path.unlink()


def loopback_bytes_per_second(seconds: float) -> float:
    """Receive what another process sends through a TCP connection in chunks of a megabyte."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(CONNECT_SECONDS_MAX)
        numbers = (listening.getsockname()[1], seconds, LOOPBACK_CHUNK_BYTES)
        with subprocess.Popen([sys.executable, "-c", SENDER, *map(str, numbers)]) as sender:
            try:
                connection, _ = listening.accept()
            except TimeoutError:
                sender.kill()
                raise Failed("loopback's own sender did not connect") from None
            with connection:
                buffer = memoryview(bytearray(LOOPBACK_CHUNK_BYTES))
                received = 0
                begin = time.monotonic()
                while count := connection.recv_into(buffer):
                    received += count
                return received / (time.monotonic() - begin)
