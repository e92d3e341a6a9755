"""Who may do what, as clients are told."""

from riverlog.model.access import CLUSTER, OPERATIONS, Operation, Principal, ResourceType, operations_allowed


class Readers:
    """Lets everybody read and describe, and nothing else."""

    def allows(self, who: Principal, operation: Operation, resource: ResourceType, name: str) -> bool:
        return operation in (Operation.READ, Operation.DESCRIBE)


def test_allowed_operations_are_a_bit_field_of_kafkas_codes():
    who = Principal("ada", "10.0.0.1")
    assert operations_allowed(Readers(), who, ResourceType.TOPIC, "orders") == (1 << 3) | (1 << 8)
    assert operations_allowed(Readers(), who, ResourceType.CLUSTER, CLUSTER) == 1 << 8


def test_only_what_can_be_done_to_a_resource_is_asked_for():
    for resource, operations in OPERATIONS.items():
        assert len(set(operations)) == len(operations), resource


def test_principals_are_written_as_in_access_rules():
    assert str(Principal("ada", "10.0.0.1")) == "User:ada"
