"""What only a cluster asks is not even imported on a node that is alone."""

import subprocess
import sys
from typing import Final

from riverlog.metadata.commands.configs import AlterConfigs, ConfigChange, ResourceChanges
from riverlog.metadata.commands.liveness import Woken
from riverlog.metadata.records import ClearElrRecord
from riverlog.model.ids import NO_NODE
from riverlog.wire.messages.incremental_alter_configs import ConfigOperation
from tests.unit.metadata.active_cluster import ActiveCluster

ONE_NODE: Final = """
import sys
from riverlog.metadata.machine import MetadataMachine
from riverlog.metadata.encoding import decode_record
from riverlog.metadata.snapshot import snapshot_records
from riverlog.node import Node
rooms = {name.rpartition(".")[2] for name in sys.modules if name.startswith("riverlog.metadata")}
print(*sorted(rooms & {"cluster_decisions", "broker_lifecycle", "election", "sweep", "access_records"}))
"""


def test_a_node_that_is_alone_starts_without_it() -> None:
    done = subprocess.run([sys.executable, "-c", ONE_NODE], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def set_for(cluster: ActiveCluster, topic: str, name: str, value: str) -> None:
    change = ConfigChange(name, ConfigOperation.SET, value)
    cluster.do(AlterConfigs((ResourceChanges(2, topic, (change,)),)))


def test_settings_have_consequences_for_leaders() -> None:
    cluster = ActiveCluster(None, None)
    cluster.create("orders", 1, (1, 2))
    cluster.beat(2, want_fence=True)
    set_for(cluster, "orders", "min.insync.replicas", "1")
    assert cluster.records[-1] == ClearElrRecord("orders")
    cluster.beat(1, want_fence=True)
    cluster.beat(2)
    assert cluster.partition("orders").leader == NO_NODE
    set_for(cluster, "orders", "unclean.leader.election.enable", "true")
    cluster.do(Woken())
    assert cluster.partition("orders").leader == 2
