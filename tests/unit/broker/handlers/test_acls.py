"""DescribeAcls, CreateAcls, DeleteAcls on a node without an authorizer."""

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.create_acls import AclCreation, CreateAclsRequest
from riverlog.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from riverlog.wire.messages.describe_acls import DescribeAclsRequest
from tests.support.asking import serving
from tests.support.clusters import controller_line
from tests.support.virtual_time import run


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_access_control_is_switched_off(version: int) -> None:
    async with serving() as (line, _node):
        described = await line.ask(ApiKey.DESCRIBE_ACLS, version, DescribeAclsRequest(resource_type_filter=1))
        assert (described.error_code, described.resources) == (ErrorCode.SECURITY_DISABLED, [])
        assert described.error_message
        created = await line.ask(ApiKey.CREATE_ACLS, version, CreateAclsRequest([AclCreation(), AclCreation()]))
        assert [each.error_code for each in created.results] == [ErrorCode.SECURITY_DISABLED] * 2
        deleted = await line.ask(ApiKey.DELETE_ACLS, version, DeleteAclsRequest([DeleteAclsFilter()]))
        assert [each.error_code for each in deleted.filter_results] == [ErrorCode.SECURITY_DISABLED]


def test_a_controller_says_the_same() -> None:
    async def scenario() -> None:
        async with controller_line() as (line, _cluster):
            described = await line.ask(ApiKey.DESCRIBE_ACLS, 3, DescribeAclsRequest(resource_type_filter=1))
            assert (described.error_code, described.resources) == (ErrorCode.SECURITY_DISABLED, [])
            created = await line.ask(ApiKey.CREATE_ACLS, 3, CreateAclsRequest([AclCreation()]))
            assert [each.error_code for each in created.results] == [ErrorCode.SECURITY_DISABLED]

    run(scenario())
