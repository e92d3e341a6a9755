"""Who decides, as long as no access rules are set: everybody may do all that is not the node's own."""

from typing import Final

from riverlog.model.access import Operation, Principal, ResourceType
from riverlog.model.checkpoint_topic import CHECKPOINTS_PRINCIPAL, CHECKPOINTS_TOPIC, CHECKPOINTS_TRANSACTIONAL_ID

_TO_CHANGE: Final = frozenset({Operation.WRITE, Operation.DELETE, Operation.ALTER})


class AllowEveryone:
    """The authoriser of a cluster without access control: only the node's own store changes its checkpoints."""

    version: Final = 0  # these rules never change

    def allows(self, who: Principal, operation: Operation, resource: ResourceType, name: str) -> bool:
        if name != CHECKPOINTS_TOPIC and name != CHECKPOINTS_TRANSACTIONAL_ID:
            return True
        if operation not in _TO_CHANGE or who.name == CHECKPOINTS_PRINCIPAL:
            return True
        is_kept = (ResourceType.TOPIC, CHECKPOINTS_TOPIC), (ResourceType.TRANSACTIONAL_ID, CHECKPOINTS_TRANSACTIONAL_ID)
        return (resource, name) not in is_kept
