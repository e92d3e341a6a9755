"""Controllers that say where they listen."""

from uuid import UUID

from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.controller_registration import ControllerRegistrationRequest
from riverlog.wire.messages.endpoints import RegisteredListener, SupportedFeature
from tests.support.clusters import controller_line
from tests.support.virtual_time import run


def test_a_controller_is_remembered_as_it_says() -> None:
    async def scenario() -> None:
        async with controller_line() as (line, cluster):
            request = ControllerRegistrationRequest(
                controller_id=3,
                incarnation_id=UUID(int=300),
                listeners=[RegisteredListener("CONTROLLER", "n3", 9093, 0)],
                features=[SupportedFeature("kraft.version", 0, 1)],
            )
            for _ in range(2):
                response = await line.ask(ApiKey.CONTROLLER_REGISTRATION, 0, request)
                assert response.error_code == ErrorCode.NONE
            controller = cluster.nodes[1].controller.image.controllers[3]
            assert [each.host for each in controller.endpoints] == ["n3"]
            assert controller.features == {"kraft.version": (0, 1)}

    run(scenario())
