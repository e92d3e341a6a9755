"""How a node takes part in the quorum."""

import pytest

from riverlog.controller.opening import begins_cluster, check_formatted, controller_endpoints, is_alone, reachable
from riverlog.log.identity import DirectoryRefused
from riverlog.model.endpoints import Endpoint
from riverlog.model.ids import Address
from riverlog.model.resolution import configure
from tests.support.disk import MemoryDisk

STOCK = {
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "localhost:9093",
}


@pytest.mark.parametrize(
    ("changes", "alone", "begins"),
    [
        ({}, False, True),
        ({"controller.quorum.bootstrap.servers": ""}, False, True),
        ({"controller.quorum.bootstrap.servers": "localhost:9093,c2:9093"}, False, False),
        ({"controller.quorum.voters": "1@localhost:9093", "node.id": "1"}, False, False),
        ({"process.roles": "broker", "listeners": "PLAINTEXT://:9092"}, False, False),
    ],
)
def test_who_names_nobody_else_begins_a_cluster(changes: dict[str, str], alone: bool, begins: bool) -> None:
    settings = configure(flags=STOCK | changes).settings
    assert (is_alone(settings), begins_cluster(settings)) == (alone, begins)


def test_without_a_listener_for_controllers_a_node_is_alone() -> None:
    settings = configure(flags={"listeners": "PLAINTEXT://:9092"}).settings
    assert is_alone(settings)
    assert begins_cluster(settings)


def test_others_are_told_where_a_controller_is_reached() -> None:
    assert [str(each) for each in controller_endpoints(configure(flags=STOCK).settings)] == [
        "CONTROLLER://localhost:9093"
    ]
    assert reachable(Endpoint("A", "", 0), Address("", 7)).port == 7
    assert reachable(Endpoint("A", "", 0), Address("", 7)).host != ""
    assert reachable(Endpoint("A", "h", 0), Address("", 7)) == Endpoint("A", "h", 7)


def test_a_folder_of_no_cluster_is_no_place_to_join_one() -> None:
    joins = configure(flags=STOCK | {"controller.quorum.bootstrap.servers": "c2:9093", "log.dirs": "/d"}).settings
    with pytest.raises(DirectoryRefused, match="riverlog storage format"):
        check_formatted(MemoryDisk(), joins)
    check_formatted(MemoryDisk(), configure(flags=STOCK).settings)
