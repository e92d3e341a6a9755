"""The metadata, read from a controller."""

import pytest

from riverlog.cli.metadata_reader import read_metadata
from riverlog.cli.metadata_records import described
from riverlog.client.admin.admin import Admin
from riverlog.client.admin.controllers import ControllerAdmin
from riverlog.metadata.snapshot import snapshot_records
from tests.support.clusters import ClusterOfNodes
from tests.support.virtual_time import run

SNAPSHOTS = "metadata.log.max.record.bytes.between.snapshots"


@pytest.mark.parametrize("bytes_between", ["1000000", "2000"])
def test_what_is_read_is_what_the_controllers_have(bytes_between: str) -> None:
    async def scenario() -> None:
        cluster = ClusterOfNodes(
            {1: "controller", 2: "controller", 3: "controller", 4: "broker"},
            **{SNAPSHOTS.replace(".", "_"): bytes_between},
        )
        await cluster.start()
        async with Admin(cluster.address(4), ports=cluster.ports) as admin:
            for number in range(20):
                await admin.create_topic(f"topic-{number}", partitions=5, configs={"retention.ms": "1000"})
        active = cluster.active()
        assert active is not None
        controller = cluster.nodes[active].controller
        assert (controller.quorum.storage.log.log_start_offset > 0) is (bytes_between == "2000")
        async with ControllerAdmin("n1:9093,n2:9093", ports=cluster.ports) as controllers:
            image = await read_metadata(controllers)
            assert list(snapshot_records(image)) == list(snapshot_records(controller.image))
            assert {each.node_id for each in (await controllers.describe_quorum()).observers} == {4}, "a reader is none"
        [broker] = [record for record in map(described, snapshot_records(image)) if record.type == "RegisterBroker"]
        assert (broker.fields["broker_id"], broker.fields["fenced"]) == (4, False)
        await cluster.stop()

    run(scenario())
