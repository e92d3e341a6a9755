"""DescribeCluster, of brokers and of controllers."""

from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.describe_cluster import DescribeClusterRequest
from tests.support.asking import Line, serving
from tests.support.clusters import CLUSTER_ID, ClusterOfNodes, controller_line
from tests.support.virtual_time import run


async def test_every_version_names_the_cluster_and_its_brokers():
    async with serving(node_id="4", broker_rack="a") as (line, node):
        for version in range(3):
            response = await line.ask(ApiKey.DESCRIBE_CLUSTER, version, DescribeClusterRequest())
            assert (response.cluster_id, response.controller_id) == (node.cluster_id, 4)
            (broker,) = response.brokers
            assert (broker.broker_id, broker.host, broker.port, broker.rack) == (4, "node", 9092, "a")
            assert response.cluster_authorized_operations == -(2**31)


async def test_allowed_operations_are_given_when_asked_for():
    async with serving() as (line, _node):
        request = DescribeClusterRequest(include_cluster_authorized_operations=True)
        response = await line.ask(ApiKey.DESCRIBE_CLUSTER, 2, request)
        assert response.cluster_authorized_operations > 0


async def test_controllers_are_not_to_be_found_here():
    async with serving() as (line, _node):
        for endpoint_type, code in (
            (2, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
            (9, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
        ):
            request = DescribeClusterRequest(endpoint_type=endpoint_type)
            response = await line.ask(ApiKey.DESCRIBE_CLUSTER, 1, request)
            assert (response.error_code, response.brokers) == (code, [])


def test_a_controller_names_the_voters_and_who_leads_them():
    async def scenario() -> None:
        cluster = ClusterOfNodes({1: "controller", 2: "controller", 3: "controller"})
        await cluster.start()
        await cluster.until(cluster.active)
        for asked in (1, 2, 3):
            line = Line(await cluster.network.connect(f"n{asked}", 9093))
            request = DescribeClusterRequest(include_cluster_authorized_operations=True, endpoint_type=2)
            response = await line.ask(ApiKey.DESCRIBE_CLUSTER, 1, request)
            assert (response.error_code, response.endpoint_type) == (ErrorCode.NONE, 2)
            assert (response.cluster_id, response.controller_id) == (CLUSTER_ID, cluster.active())
            found = [(each.broker_id, each.host, each.port) for each in response.brokers]
            assert found == [(1, "n1", 9093), (2, "n2", 9093), (3, "n3", 9093)]
            assert response.cluster_authorized_operations > 0
        await cluster.stop()

    run(scenario())


def test_brokers_are_not_to_be_found_at_a_controller():
    async def scenario() -> None:
        async with controller_line() as (line, _cluster):
            for version, endpoint_type, code in (
                (0, 1, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
                (1, 1, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
                (1, 9, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
            ):
                request = DescribeClusterRequest(endpoint_type=endpoint_type)
                response = await line.ask(ApiKey.DESCRIBE_CLUSTER, version, request)
                assert (response.error_code, response.brokers) == (code, [])

    run(scenario())
