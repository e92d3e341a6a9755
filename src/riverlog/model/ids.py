"""The names of things: ids, offsets, epochs. Types only, so that a swapped argument fails in mypy."""

from typing import Final, NamedTuple, NewType
from uuid import UUID

NodeId = NewType("NodeId", int)
Offset = NewType("Offset", int)
LeaderEpoch = NewType("LeaderEpoch", int)
ProducerId = NewType("ProducerId", int)
ProducerEpoch = NewType("ProducerEpoch", int)
TopicId = NewType("TopicId", UUID)

NO_OFFSET: Final = Offset(-1)
NO_EPOCH: Final = LeaderEpoch(-1)
NO_PRODUCER: Final = ProducerId(-1)
NO_PRODUCER_EPOCH: Final = ProducerEpoch(-1)
NO_TOPIC_ID: Final = TopicId(UUID(int=0))
NO_NODE: Final = NodeId(-1)
NO_TIMESTAMP: Final = -1
TIMESTAMP_MAX: Final = 2**63 - 1
NO_SEQUENCE: Final = -1


class TopicPartition(NamedTuple):
    """One partition of one topic, by name. Its text form is also the name of its folder: `orders-3`."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Address(NamedTuple):
    """Where a socket listens or comes from."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
