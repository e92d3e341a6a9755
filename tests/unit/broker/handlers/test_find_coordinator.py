"""FindCoordinator: an honest no, in every version."""

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.find_coordinator import FindCoordinatorRequest
from tests.support.asking import serving
from tests.support.virtual_time import run


@pytest.mark.parametrize("version", range(7))
def test_no_coordinator_is_available(version: int) -> None:
    async def scenario() -> None:
        async with serving() as (line, _node):
            request = FindCoordinatorRequest(key="g", coordinator_keys=["g", "h"])
            response = await line.ask(ApiKey.FIND_COORDINATOR, version, request)
            if version < 4:
                assert response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
            else:
                assert [each.key for each in response.coordinators] == ["g", "h"]
                assert {each.error_code for each in response.coordinators} == {ErrorCode.COORDINATOR_NOT_AVAILABLE}

    run(scenario())
