"""kafka-python's own integration tests, taken from its source archive and run against our broker.

The archive is fetched from the package registry into a cache outside the tree. Its tests know how to use a broker
that runs elsewhere (KAFKA_URI), but two modules that they import are not packed into it; they are written here.
"""

import os
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Final

from tests.conformance.cache import cache_folder
from tests.support.node import Node

SUITE_FILES: Final = ("test_producer_integration.py", "test_consumer_integration.py", "test_admin_integration.py")
"""The tests over plaintext; two more files need TLS and SASL."""

KAFKA_VERSION: Final = "4.3"
"""The version whose APIs our broker speaks; the tests hold it to that."""

PENDING: Final = Path(__file__).with_name("kafka_python_pending.txt")

SERVICE: Final = '''"""A broker that somebody else started."""


class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port


class SpawnedService:
    def __init__(self, *arguments):
        raise RuntimeError("these tests start no broker")
'''


def prepare() -> Path:
    """Return the folder that holds the package `test`, fetching the archive if it is not there yet."""
    release = version("kafka-python")
    cache = cache_folder()
    folder = cache / f"kafka-python-{release}"
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as temporary:
            unpacked = _unpack(_download(release, Path(temporary)), Path(temporary) / "unpacked")
            (unpacked / "test" / "__init__.py").touch()
            (unpacked / "test" / "service.py").write_text(SERVICE)
            unpacked.rename(folder)
    return folder


def environment(bootstrap: str, folder: Path) -> dict[str, str]:
    """Return for the tests which broker to use; they look for Kafka's folder, but need nothing in it."""
    project = Path(__file__).parents[2]
    return {
        "KAFKA_URI": f"kafka://{bootstrap}",
        "KAFKA_VERSION": KAFKA_VERSION,
        "KAFKA_ROOT": str(folder),
        "PYTHONPATH": os.pathsep.join([str(folder), str(project)]),
    }


def node(folder: Path) -> Node:
    """Return a node as the tests take it for granted: it has the id 0, was told which address to advertise, and lets
    sessions of groups be short."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    advertised = f"PLAINTEXT://127.0.0.1:{port}"
    settings = {
        "node.id": "0",
        "num.partitions": "4",
        "advertised.listeners": advertised,
        "group.min.session.timeout.ms": "1000",
    }
    return Node(folder, port=port, settings=settings)


def _download(release: str, folder: Path) -> Path:
    arguments = ["download", "--quiet", "--no-binary", ":all:", "--no-deps", "--dest", str(folder)]
    subprocess.run([*_pip(), *arguments, f"kafka-python=={release}"], check=True)
    (archive,) = folder.glob("*.tar.gz")
    return archive


def _pip() -> list[str]:
    """Find a pip: this environment's, the system's, or one that uv fetches."""
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode == 0:
        return [sys.executable, "-m", "pip"]
    if uv := shutil.which("uv"):
        return [uv, "tool", "run", "--quiet", "pip"]
    if pip := shutil.which("pip3"):
        return [pip]
    raise FileNotFoundError("no pip was found to fetch kafka-python's source archive with")


def _unpack(archive: Path, folder: Path) -> Path:
    """Take only the tests: the client under test is the installed one."""
    with tarfile.open(archive) as content:
        for member in content.getmembers():
            _, _, inner = member.name.partition("/")
            if inner.startswith("test/"):
                member.name = inner
                content.extract(member, folder, filter="data")
    return folder
