"""Who asks, what for, and who decides: Kafka's resources and operations, and the authoriser's port."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Protocol


class ResourceType(IntEnum):
    """What can be guarded, with Kafka's codes."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class Operation(IntEnum):
    """What can be done to a resource, with Kafka's codes."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


CLUSTER: Final = "kafka-cluster"
"""The one name of the one resource of type CLUSTER."""

OPERATIONS: Final[dict[ResourceType, tuple[Operation, ...]]] = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (Operation.READ, Operation.DELETE, Operation.DESCRIBE),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
}


@dataclass(frozen=True, slots=True)
class Principal:
    """Whoever a connection has shown to be, and from where it came."""

    name: str
    host: str

    def __str__(self) -> str:
        return f"User:{self.name}"


ANONYMOUS: Final = "ANONYMOUS"


class Authorizer(Protocol):
    """Decides whether a principal may do something."""

    @property
    def version(self) -> int:
        """Return a number that changes whenever the rules do: what was allowed before may not be any more."""

    def allows(self, who: Principal, operation: Operation, resource: ResourceType, name: str) -> bool: ...


def operations_allowed(authorizer: Authorizer, who: Principal, resource: ResourceType, name: str) -> int:
    """Return the bit field of allowed operations that Metadata and Describe responses carry."""
    return sum(
        1 << operation for operation in OPERATIONS[resource] if authorizer.allows(who, operation, resource, name)
    )
