"""DescribeCluster."""

from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.describe_cluster import DescribeClusterRequest
from tests.support.asking import serving


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
