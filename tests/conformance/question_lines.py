"""Single requests, as no client lets one send them, and what a broker answers, in a form that compares.

Members are named in the order in which they appear; throttle times, sentences and addresses are left out.
"""

import asyncio
import dataclasses
from typing import Any, Final
from uuid import UUID

from riverlog.client.network.connection import Connection
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Address
from riverlog.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from riverlog.wire.messages.find_coordinator import FindCoordinatorRequest
from riverlog.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from riverlog.world.network import TcpNetwork
from tests.conformance.adapters import WAIT_SECONDS_MAX, Deadline
from tests.conformance.transaction_lines import NOT_YET, PAUSE_SECONDS

PARTITIONS: Final = 2
LEFT_OUT: Final = frozenset(("throttle_time_ms", "error_message", "client_host", "port", "heartbeat_interval_ms"))
NAMES_OF_MEMBERS: Final = frozenset(("member_id", "leader"))
_WAITS: Final = frozenset(code.name for code in NOT_YET)


class Asking:
    """One connection to a broker, a topic and a group that both have one name, and all that was answered."""

    def __init__(self, connection: Connection, name: str) -> None:
        self.said: list[str] = []
        self.name = name
        self.topic_id = UUID(int=0)
        self._connection = connection
        self._members: dict[str, str] = {}

    @classmethod
    async def open(cls, address: Address, name: str) -> "Asking":
        """Connect, create the topic, and see that the coordinator is there."""
        connection = await Connection.open(
            TcpNetwork(), address, client_id="asks", connect_seconds=WAIT_SECONDS_MAX, request_seconds=WAIT_SECONDS_MAX
        )
        asking = cls(connection, name)
        topic = CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=1)
        created = await connection.request(CreateTopicsRequest(topics=[topic], timeout_ms=int(WAIT_SECONDS_MAX * 1000)))
        asking.topic_id = created.topics[0].topic_id
        await asking._await_leaders()
        await asking.ask("coordinator", FindCoordinatorRequest(coordinator_keys=[name]))
        asking.said.clear()
        return asking

    def close(self) -> None:
        self._connection.close()

    async def ask(self, what: str, request: object, version: int | None = None) -> Any:
        """Note the answer under these words, and give it; "not yet" is asked again."""
        deadline = Deadline()
        while True:
            answer = await self._connection.request(request, version_max=version)
            told = self._told(answer)
            if not any(f"'{code}'" in str(told) for code in _WAITS) or not deadline.left():
                break
            await asyncio.sleep(PAUSE_SECONDS)
        self.said.append(f"{what}: {told}")
        return answer

    async def _await_leaders(self) -> None:
        """Wait until the new partitions answer; Kafka says that a topic is created some time before it is."""
        partitions = [ListOffsetsPartition(index, timestamp=-1) for index in range(PARTITIONS)]
        request = ListOffsetsRequest(topics=[ListOffsetsTopic(self.name, partitions)])
        deadline = Deadline()
        while any(each.error_code for each in (await self._connection.request(request)).topics[0].partitions):
            assert deadline.left(), f"{self.name} was not created"
            await asyncio.sleep(PAUSE_SECONDS)

    def _told(self, value: Any, field: str = "") -> Any:
        if dataclasses.is_dataclass(value):
            names = [each.name for each in dataclasses.fields(value) if each.name not in LEFT_OUT]
            return {name: self._told(getattr(value, name), name) for name in names}
        if isinstance(value, list):
            answers = [self._told(each, field) for each in value]
            return sorted(answers, key=str)  # in which order is up to a broker
        if field.endswith("error_code"):
            return ErrorCode(value).name
        if field in NAMES_OF_MEMBERS and value:
            return self._members.setdefault(value, f"member {len(self._members)}")
        if isinstance(value, UUID):
            return "its id" if value == self.topic_id else value.int and "an id"
        return bytes(value) if isinstance(value, memoryview | bytearray) else value
