"""A real broker inside the test process, on a free port and in a temporary folder.

With pytest the fixtures `riverlog_broker` (a fresh broker per test) and `riverlog_broker_session` (one for all
tests) are there as soon as riverlog is installed; with anything else use `running_broker`. The broker has a
thread and an event loop of its own, so tests may block as they like. Importing this module costs next to
nothing: the broker is imported when the first test asks for one.
"""

from __future__ import annotations

import tempfile
import threading
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator, Mapping

    from riverlog.model.ids import Address
    from riverlog.model.settings import NodeSettings

WAIT_SECONDS_MAX: Final = 30.0
WORKER_THREADS: Final = 4


class RunningBroker:
    """A broker that is ready. Point any Kafka client at `bootstrap_servers`."""

    def __init__(self, address: Address, folder: str, loop: asyncio.AbstractEventLoop) -> None:
        self.address = address
        self.folder = folder
        self._loop = loop

    @property
    def bootstrap_servers(self) -> str:
        """Return the address in the form that clients take: `127.0.0.1:40123`."""
        return str(self.address)

    def create_topic(self, name: str, *, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
        """Create a topic and return once it can be used."""
        import asyncio

        from riverlog.client.admin.admin import Admin

        async def create() -> None:
            async with Admin(self.bootstrap_servers) as admin:
                await admin.create_topic(name, partitions=partitions, configs=dict(configs or {}))

        asyncio.run_coroutine_threadsafe(create(), self._loop).result(WAIT_SECONDS_MAX)


@contextmanager
def running_broker(**settings: object) -> Iterator[RunningBroker]:
    """Run a broker for the length of a `with` block.

    Settings have Kafka's names with underscores: `running_broker(num_partitions=3)`. A wrong one is a BadSetting.
    """
    from riverlog.model.resolution import configure

    with tempfile.TemporaryDirectory(prefix="riverlog-test-") as folder:
        flags = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": folder}
        flags |= {"metrics.port": "-1", "checkpoints.port": "-1"}
        flags |= {name.replace("_", "."): _text(value) for name, value in settings.items()}
        thread = _BrokerThread(configure(profile="dev", flags=flags).settings, folder)
        thread.start()
        try:
            yield thread.ready.result(WAIT_SECONDS_MAX)
        finally:
            thread.stop()


class _BrokerThread(threading.Thread):
    """One broker on one event loop in one thread; what goes wrong in there is raised by those who wait here."""

    def __init__(self, settings: NodeSettings, folder: str) -> None:
        super().__init__(name="riverlog-broker", daemon=True)
        self.ready: Future[RunningBroker] = Future()
        self._settings = settings
        self._folder = folder
        self._failure: BaseException | None = None
        self._stopping: asyncio.Event

    def run(self) -> None:
        """Start the broker, wait for the word to stop, stop it."""
        import asyncio

        try:
            asyncio.run(self._serve())
        except BaseException as error:
            if self.ready.done():
                self._failure = error
            else:
                self.ready.set_exception(error)

    def stop(self) -> None:
        """Stop the broker, wait until nothing of it is left, and raise what it could not go on after."""
        if self.ready.exception(WAIT_SECONDS_MAX) is None:
            with suppress(RuntimeError):  # its loop is closed: it has ended by itself
                self.ready.result()._loop.call_soon_threadsafe(self._stopping.set)
        self.join(WAIT_SECONDS_MAX)
        if self._failure is not None:
            raise self._failure

    async def _serve(self) -> None:
        import asyncio

        from riverlog.node import Node
        from riverlog.node_world import World
        from riverlog.world.workers import ThreadWorkers

        self._stopping = asyncio.Event()
        workers = ThreadWorkers(WORKER_THREADS)
        node = Node(self._settings, World(workers=workers))
        try:
            await node.start()
            self.ready.set_result(RunningBroker(node.endpoints[0].address, self._folder, asyncio.get_running_loop()))
            told = asyncio.create_task(self._stopping.wait())
            failed = asyncio.create_task(node.run())
            await asyncio.wait({told, failed}, return_when=asyncio.FIRST_COMPLETED)
            if failed.done():
                raise failed.result()
            failed.cancel()
        finally:
            await node.stop()
            workers.close()


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


try:
    import pytest
except ImportError:  # without pytest there are no fixtures to offer, and running_broker works all the same
    pass
else:

    @pytest.fixture
    def riverlog_broker() -> Iterator[RunningBroker]:
        """A fresh broker for this test."""
        with running_broker() as broker:
            yield broker

    @pytest.fixture(scope="session")
    def riverlog_broker_session() -> Iterator[RunningBroker]:
        """One broker for the whole run; tests choose topic names that do not collide."""
        with running_broker() as broker:
            yield broker
