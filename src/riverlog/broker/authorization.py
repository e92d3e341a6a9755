"""Who decides, as long as no access rules are set: everybody may do everything."""

from riverlog.model.access import Operation, Principal, ResourceType


class AllowEveryone:
    """The authoriser of a cluster without access control."""

    def allows(self, who: Principal, operation: Operation, resource: ResourceType, name: str) -> bool:
        return True
