"""Controllers joining the cluster."""

from dataclasses import replace
from uuid import UUID

from riverlog.metadata.commands.controllers import RegisterController, register_controller
from riverlog.metadata.draft import after
from riverlog.metadata.image import MetadataImage, RegisteredEndpoint
from riverlog.model.ids import NodeId

COMMAND = RegisterController(
    NodeId(100), UUID(int=7), (RegisteredEndpoint("CONTROLLER", "c", 9093),), {"kraft.version": (0, 1)}
)


def test_the_newest_registration_of_a_controller_counts() -> None:
    image = after(MetadataImage(), register_controller(MetadataImage(), COMMAND)[0])
    assert register_controller(image, COMMAND) == ([], None), "nothing is new"
    again = replace(COMMAND, incarnation_id=UUID(int=8))
    image = after(image, register_controller(image, again)[0])
    assert image.controllers[NodeId(100)].incarnation_id == UUID(int=8)
