"""FindCoordinator: the node itself, in every version."""

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.find_coordinator import FindCoordinatorRequest
from tests.support.asking import serving
from tests.support.virtual_time import run


@pytest.mark.parametrize("version", range(7))
def test_the_node_looks_after_every_key(version: int) -> None:
    async def scenario() -> None:
        async with serving(node_id="3") as (line, _node):
            request = FindCoordinatorRequest(key="g", coordinator_keys=["g", "h"])
            response = await line.ask(ApiKey.FIND_COORDINATOR, version, request)
            found = [response] if version < 4 else response.coordinators
            for each in found:
                assert (each.error_code, each.node_id, each.host, each.port) == (ErrorCode.NONE, 3, "node", 9092)
            if version >= 4:
                assert [each.key for each in found] == ["g", "h"]

    run(scenario())


def test_other_kinds_of_coordinators_are_not_known() -> None:
    async def scenario() -> None:
        async with serving() as (line, _node):
            request = FindCoordinatorRequest(key_type=9, coordinator_keys=["g"])
            (found,) = (await line.ask(ApiKey.FIND_COORDINATOR, 6, request)).coordinators
            assert (found.error_code, found.node_id) == (ErrorCode.INVALID_REQUEST, -1)

    run(scenario())
