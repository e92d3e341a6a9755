"""What the clients of one run share: the history, the partitions, how to make clients, and what they ran into."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Literal, TypeVar

from riverlog.client.admin.admin import Admin
from riverlog.client.consumer.consumer import Consumer
from riverlog.client.errors import KafkaError
from riverlog.client.ports import Ports
from riverlog.client.producer.producer import Producer
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.verify.history import History, Isolation

T = TypeVar("T")
Protocol = Literal["classic", "consumer"]

PAUSE_SECONDS: Final = 0.25
_PRODUCER: Final = {"delivery_timeout_ms": 60_000, "request_timeout_ms": 5_000, "linger_ms": 2}
_TRANSACTION_MS_MAX: Final = 15_000
"""Nobody waits for longer for what a producer that vanished has left open."""
_CONSUMER: Final = {
    "auto_offset_reset": "earliest",
    "auto_commit": False,
    "session_timeout_ms": 10_000,
    "heartbeat_interval_ms": 1_000,
    "request_timeout_ms": 5_000,
}
"""Time-outs that end within a run, so that a broker that comes back is noticed."""


class Scene:
    """One cluster, the topics and the group made for the run, and all that was noted."""

    def __init__(
        self,
        bootstrap: str,
        *,
        partitions: list[TopicPartition],
        group: str,
        producer: Mapping[str, Any],
        consumer: Mapping[str, Any],
        ports: Ports | None,
    ) -> None:
        self.history = History()
        self.partitions = partitions
        self.group = group
        self.isolation = Isolation.READ_COMMITTED
        """What the members of the group ask for: so none of them may be shown what is not committed."""
        self.troubles: Counter[str] = Counter()
        """How often clients met which error; a cluster that is killed meanwhile causes many."""
        self.writing = True
        self.consuming = True
        self._bootstrap = bootstrap
        self._producer = producer
        self._consumer = consumer
        self._ports = ports

    @property
    def topics(self) -> list[str]:
        return sorted({partition.topic for partition in self.partitions})

    def admin(self) -> Admin:
        security = self._producer.get("security")
        return Admin(self._bootstrap, timeout_ms=10_000, security=security, ports=self._ports)

    def producer(self, compression: str) -> Producer:
        settings = {**_PRODUCER, "compression": compression, **self._producer}
        return Producer(self._bootstrap, ports=self._ports, **settings)

    def transactional_producer(self, transactional_id: str) -> Producer:
        settings = {**_PRODUCER, **self._producer, "transaction_timeout_ms": _TRANSACTION_MS_MAX}
        return Producer(self._bootstrap, ports=self._ports, transactional_id=transactional_id, **settings)

    def bystander(self, group: str) -> Consumer:
        """Make a consumer that only asks for a group's offsets, and for none that may still be taken back."""
        return self._new_consumer(Isolation.READ_COMMITTED, group=group)

    def member(self, protocol: Protocol) -> Consumer:
        return self._new_consumer(self.isolation, group=self.group, group_protocol=protocol)

    def reader(self, isolation: Isolation) -> Consumer:
        return self._new_consumer(isolation)

    def _new_consumer(self, isolation: Isolation, **named: Any) -> Consumer:
        settings = {**_CONSUMER, **self._consumer, **named, "isolation_level": isolation.value}
        return Consumer(self._bootstrap, ports=self._ports, **settings)

    def trouble(self, error: KafkaError) -> None:
        """Count an error that a client met; what it means for the history is noted where it happened."""
        self.troubles[error.code.name] += 1

    async def insist(
        self, ask: Callable[[], Awaitable[T]], *, seconds: float, passing: frozenset[ErrorCode] = frozenset()
    ) -> T:
        """Ask until there is an answer or the time is up, whatever a cluster that is coming back says meanwhile.

        `passing` are errors that will pass here, though others could not wait for it.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while True:
            try:
                return await ask()
            except KafkaError as error:
                if not (error.retriable or error.code in passing) or loop.time() > deadline:
                    raise
                self.trouble(error)
            await asyncio.sleep(PAUSE_SECONDS)
