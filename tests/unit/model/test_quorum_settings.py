"""The settings of a node's share in the cluster, and what contradicts itself."""

import pytest

from riverlog.model.ids import Address, NodeId
from riverlog.model.quorum_settings import StaticVoter
from riverlog.model.resolution import configure, controller_listeners
from riverlog.model.setting import BadSetting
from riverlog.model.settings import NodeSettings

CONTROLLER = {
    "process.roles": "controller",
    "controller.listener.names": "CONTROLLER",
    "listeners": "CONTROLLER://c1:9093",
    "controller.quorum.bootstrap.servers": "c1:9093,c2:9093",
}


def settings(**changes: str) -> NodeSettings:
    return configure(flags=CONTROLLER | {name.replace("_", "."): text for name, text in changes.items()}).settings


def test_a_node_is_both_and_alone_unless_it_is_told_otherwise() -> None:
    alone = configure().settings
    assert alone.is_broker
    assert alone.is_controller
    assert (alone.controller_quorum_bootstrap_servers, alone.controller_quorum_voters) == ((), ())


def test_a_controller_names_the_others() -> None:
    read = settings(node_id="3", controller_quorum_voters="3@[::1]:9093,4@c4:9094")
    assert not read.is_broker
    assert read.controller_quorum_bootstrap_servers == (Address("c1", 9093), Address("c2", 9093))
    assert read.controller_quorum_voters[0] == StaticVoter(NodeId(3), Address("::1", 9093))
    assert [str(each) for each in controller_listeners(read)] == ["CONTROLLER://c1:9093"]


def test_the_first_name_is_the_listener_on_which_controllers_reach_each_other() -> None:
    read = settings(controller_listener_names="b,a", listeners="A://h:1,B://h:2")
    assert [each.listener for each in controller_listeners(read)] == ["B", "A"]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"process_roles": "brocker"}, "process.roles is 'brocker'; write broker, controller, or broker,controller"),
        ({"process_roles": "broker,broker"}, "process.roles is 'broker,broker'"),
        ({"controller_quorum_bootstrap_servers": "c1"}, "bootstrap.servers has 'c1'; write HOST:PORT"),
        ({"controller_quorum_bootstrap_servers": "c1:0"}, "bootstrap.servers has 'c1:0'; write HOST:PORT"),
        ({"controller_quorum_voters": "c1:9093"}, "voters has 'c1:9093'; write ID@HOST:PORT"),
        ({"controller_quorum_voters": "1@c1"}, "voters has '1@c1'; write ID@HOST:PORT"),
        ({"controller_quorum_voters": "1@c1:1,1@c2:1"}, "names a node twice"),
        ({"controller_quorum_voters": "7@c1:1"}, "does not name this node, which is 1"),
        (
            {"process_roles": "broker", "listeners": "PLAINTEXT://h:1", "controller_quorum_voters": "1@c1:1"},
            "names node 1, and this broker has that id",
        ),
        ({"controller_listener_names": ""}, "is for clients, and process.roles says that this node is no broker"),
        ({"listeners": "CONTROLLER://c1:0"}, "needs a port: others find a controller by its address"),
        ({"listeners": ""}, "listeners has no CONTROLLER"),
        ({"process_roles": "broker"}, "listeners names no address for clients"),
        ({"process_roles": "broker", "listeners": "A://h:1,CONTROLLER://h:2"}, "says that this node is none"),
        (
            {"process_roles": "broker", "listeners": "PLAINTEXT://h:1", "controller_quorum_bootstrap_servers": ""},
            "must know controllers; name some in controller.quorum.bootstrap.servers",
        ),
        ({"process_roles": "broker,controller", "listeners": "PLAINTEXT://h:1"}, "listeners has no CONTROLLER"),
    ],
)
def test_what_contradicts_itself_is_refused_with_one_sentence(changes: dict[str, str], sentence: str) -> None:
    with pytest.raises(BadSetting) as refused:
        settings(node_id="1", **changes)
    assert sentence in str(refused.value)
    assert str(refused.value).count(". ") <= 1
