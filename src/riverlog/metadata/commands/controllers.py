"""Controllers: where they are reached, and which features they support."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from riverlog.metadata.commands.brokers import check_endpoints
from riverlog.metadata.image import ControllerImage, MetadataImage, RegisteredEndpoint
from riverlog.metadata.node_records import controller_record
from riverlog.metadata.records import MetadataRecord
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NodeId
from riverlog.model.machine import Command


@dataclass(frozen=True, slots=True)
class RegisterController(Command[MetadataRecord, None]):
    """A controller's process has started."""

    controller_id: NodeId
    incarnation_id: UUID
    endpoints: tuple[RegisteredEndpoint, ...]
    features: Mapping[str, tuple[int, int]]


def register_controller(image: MetadataImage, command: RegisterController) -> tuple[list[MetadataRecord], None]:
    """Take the controller in, in the place of an earlier one with its id."""
    if command.controller_id < 0:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"A controller has no id {command.controller_id}.")
    check_endpoints(f"Controller {command.controller_id}", command.endpoints)
    controller = ControllerImage(
        command.controller_id, command.incarnation_id, command.endpoints, dict(command.features)
    )
    if image.controllers.get(controller.id) == controller:
        return [], None
    return [controller_record(controller)], None
