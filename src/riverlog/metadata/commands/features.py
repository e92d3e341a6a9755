"""Raising and lowering what the whole cluster may use (UpdateFeatures, KIP-584, 1022)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from riverlog.metadata.broker_index import BrokerIndex
from riverlog.metadata.features import ELIGIBLE_LEADERS, METADATA_VERSION, NODE_FEATURES
from riverlog.metadata.image import MetadataImage
from riverlog.metadata.records import FeatureLevelRecord, MetadataRecord
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NodeId
from riverlog.model.machine import Command


class UpgradeType(IntEnum):
    """What a client takes a change for, with Kafka's codes."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


@dataclass(frozen=True, slots=True)
class FeatureUpdate:
    """A feature and its new level; 0 switches it off. The kind of change is as the client sent it."""

    name: str
    level: int
    upgrade_type: int = UpgradeType.UPGRADE


@dataclass(frozen=True, slots=True)
class UpdateFeatures(Command[MetadataRecord, None]):
    """Set the levels of features, all of them or none."""

    updates: tuple[FeatureUpdate, ...]
    controller_ids: tuple[NodeId, ...] = ()
    """Who votes on the metadata: all of them must have registered."""
    validate_only: bool = False


def update_features(
    image: MetadataImage, command: UpdateFeatures, index: BrokerIndex
) -> tuple[list[MetadataRecord], None]:
    """Set what every registered node knows."""
    records: list[MetadataRecord] = []
    for update in command.updates:
        _check(image, update, command.controller_ids, index)
        if image.features.get(update.name, 0) != update.level:
            records.append(FeatureLevelRecord(name=update.name, feature_level=update.level))
    return [] if command.validate_only else records, None


def _check(image: MetadataImage, update: FeatureUpdate, controller_ids: tuple[NodeId, ...], index: BrokerIndex) -> None:
    name, level, before = update.name, update.level, image.features.get(update.name, 0)
    own = NODE_FEATURES.get(name)
    if own is None:
        raise _refused(f"There is no feature {name!r} here.")
    if not own.lowest <= level <= own.highest:
        raise _refused(
            f"{name} is at level {before} and can be set from {own.lowest} to {own.highest}, not to {level}."
        )
    if update.upgrade_type not in list(UpgradeType):
        raise _refused(f"{update.upgrade_type} is no kind of upgrade; {name} stays at level {before}.")
    if level < before and update.upgrade_type == UpgradeType.UPGRADE:
        raise _refused(
            f"{name} is at level {before}; setting it to {level} is a downgrade, and was not asked for as one."
        )
    if level > before and update.upgrade_type != UpgradeType.UPGRADE:
        raise _refused(f"{name} is at level {before}; {level} is no downgrade.")
    if name == METADATA_VERSION and level < before:
        raise _refused(f"{name} cannot go below {before}: what later records say would be lost.")
    for node, levels in _nodes(image):
        lowest, highest = levels.get(name, (0, 0))
        if not lowest <= level <= highest:
            raise _refused(f"{node} supports {name} from {lowest} to {highest}, not {level}.")
    unknown = [each for each in controller_ids if each not in image.controllers]
    if unknown:
        raise _refused(f"Controller {unknown[0]} has not registered, and may not support {name} {level}.")
    if name == ELIGIBLE_LEADERS and level < before and index.eligible.keys() and index.leaderless:
        raise _refused(f"Some partitions wait for an eligible leader, who would be forgotten with {name} {level}.")


def _nodes(image: MetadataImage) -> Iterator[tuple[str, Mapping[str, tuple[int, int]]]]:
    for _id, broker in sorted(image.brokers.items()):
        yield f"Broker {broker.id}", broker.features
    for _id, controller in sorted(image.controllers.items()):
        yield f"Controller {controller.id}", controller.features


def _refused(sentence: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_UPDATE_VERSION, sentence)
