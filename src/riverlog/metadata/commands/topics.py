"""Creating and deleting topics."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from riverlog.metadata.commands.outcome import DONE, Outcome, named_twice, repeats
from riverlog.metadata.commands.partitions import (
    Assignment,
    check_replicas,
    partition_records,
    replication_factor_of,
)
from riverlog.metadata.draft import after
from riverlog.metadata.image import ConfigResource, ConfigResourceType, MetadataImage, TopicImage, folded
from riverlog.metadata.limits import TOPIC_NAME_CHARACTERS_MAX
from riverlog.metadata.placement import BrokerLoad, place
from riverlog.metadata.records import ConfigRecord, MetadataRecord, RemoveTopicRecord, TopicRecord
from riverlog.model.checkpoint_topic import (
    CHECKPOINTS_CONFIGS,
    CHECKPOINTS_PARTITIONS,
    CHECKPOINTS_TOPIC,
    unfit_settings,
)
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NO_TOPIC_ID, TopicId
from riverlog.model.limits import PARTITIONS_PER_REQUEST_MAX
from riverlog.model.machine import Command
from riverlog.model.resolution import check_topic
from riverlog.model.setting import BadSetting
from riverlog.model.settings import SettingLayers

METADATA_TOPIC: Final = "__cluster_metadata"
_NAME_CHARACTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


@dataclass(frozen=True, slots=True)
class TopicCreation:
    """A topic to create. -1 stands for the default; assignments name the replicas of each partition instead.

    The id is chance, so it comes with the command.
    """

    name: str
    id: TopicId
    partitions: int = -1
    replication_factor: int = -1
    assignments: tuple[Assignment, ...] = ()
    configs: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreateTopics(Command[MetadataRecord, "TopicCreationReplies"]):
    """Create topics, or only see whether it could be done."""

    topics: tuple[TopicCreation, ...]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class TopicDefaults:
    """What holds for a topic that does not say so itself."""

    partitions: int
    replication_factor: int
    layers: SettingLayers = field(default_factory=SettingLayers)
    replicas_max: int | None = None
    """How many replicas a partition may have; None for as many as there are brokers."""


@dataclass(frozen=True, slots=True)
class TopicCreationReply:
    """What became of one topic; the topic as it is now, or would be, unless it was refused."""

    name: str
    outcome: Outcome
    topic: TopicImage | None = None
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicCreationReplies:
    """The reply to CreateTopics, topic by topic."""

    topics: tuple[TopicCreationReply, ...]


@dataclass(frozen=True, slots=True)
class DeleteTopics(Command[MetadataRecord, "TopicDeletionReplies"]):
    """Delete topics, each by its id."""

    topic_ids: tuple[TopicId, ...]


@dataclass(frozen=True, slots=True)
class TopicDeletionReplies:
    """The reply to DeleteTopics, in the order of the ids."""

    outcomes: tuple[Outcome, ...]


def create_topics(
    image: MetadataImage, command: CreateTopics, defaults: TopicDefaults, load: BrokerLoad
) -> tuple[list[MetadataRecord], TopicCreationReplies]:
    """Decide about each topic on its own; one that cannot be created does not hold up the others."""
    records: list[MetadataRecord] = []
    created: list[TopicCreationReply] = []
    repeated = repeats(topic.name for topic in command.topics)
    partitions_left = PARTITIONS_PER_REQUEST_MAX
    for new in command.topics:
        try:
            if new.name in repeated:
                raise named_twice(new.name)
            facts = _topic_records(image, new, defaults, load, partitions_left)
        except Refusal as refusal:
            created.append(TopicCreationReply(new.name, Outcome.of(refusal)))
            continue
        image = after(image, facts)
        load.add(facts)
        topic = image.topic(new.name)
        assert topic is not None
        partitions_left -= topic.partition_count
        records += facts
        created.append(TopicCreationReply(new.name, DONE, topic, image.topic_overrides(new.name)))
    return [] if command.validate_only else records, TopicCreationReplies(tuple(created))


def delete_topics(image: MetadataImage, command: DeleteTopics) -> tuple[list[MetadataRecord], TopicDeletionReplies]:
    """Decide about each topic on its own."""
    records: list[MetadataRecord] = []
    outcomes: list[Outcome] = []
    for topic_id in command.topic_ids:
        if image.topic_by_id(topic_id) is None:
            outcomes.append(Outcome(ErrorCode.UNKNOWN_TOPIC_ID, f"There is no topic with the id {topic_id}."))
            continue
        record = RemoveTopicRecord(topic_id=topic_id)
        image = after(image, [record])
        records.append(record)
        outcomes.append(DONE)
    return records, TopicDeletionReplies(tuple(outcomes))


def check_topic_name(name: str) -> None:
    """Refuse a name that cannot be a topic's."""
    problem = _name_problem(name)
    if problem:
        raise Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)


def _name_problem(name: str) -> str | None:
    if not name:
        return "A topic needs a name."
    if name in (".", ".."):
        return f"A topic cannot be called {name!r}."
    if len(name) > TOPIC_NAME_CHARACTERS_MAX:
        return f"The topic's name has {len(name)} characters; {TOPIC_NAME_CHARACTERS_MAX} are the most there can be."
    if not _NAME_CHARACTERS.issuperset(name):
        return f"The topic's name {name!r} may hold only ASCII letters, digits, '.', '_' and '-'."
    if name == METADATA_TOPIC:
        return f"{name} is the name of the cluster's own metadata log."
    return None


def _topic_records(
    image: MetadataImage, new: TopicCreation, defaults: TopicDefaults, load: BrokerLoad, partitions_left: int
) -> list[MetadataRecord]:
    assert new.id != NO_TOPIC_ID
    assert image.topic_by_id(new.id) is None
    check_topic_name(new.name)
    if new.name in image.topics:
        raise Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"The topic {new.name!r} already exists.")
    twin = image.folded_names.get(folded(new.name))
    if twin is not None:
        raise Refusal(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"The topic {new.name!r} collides with the topic {twin!r}: '.' and '_' are the same in names of metrics.",
        )
    new = _as_kept(new)
    configs = _checked_configs(new.configs, defaults.layers)
    check_kept(new.name, configs)
    replicas = _replicas(image, new, defaults, load, partitions_left)
    return [
        TopicRecord(name=new.name, topic_id=new.id),
        *config_records(ConfigResource(ConfigResourceType.TOPIC, new.name), configs),
        *partition_records(image, new.id, replicas, load, first=0),
    ]


def _as_kept(new: TopicCreation) -> TopicCreation:
    """Set what the topic of checkpoints needs, whoever asks for it first; Refusal for anything else."""
    if new.name != CHECKPOINTS_TOPIC:
        return new
    partitions = len(new.assignments) or new.partitions
    if partitions not in (-1, CHECKPOINTS_PARTITIONS):
        raise Refusal(
            ErrorCode.INVALID_PARTITIONS, f"{new.name} has {CHECKPOINTS_PARTITIONS} partitions, not {partitions}."
        )
    configs = {**CHECKPOINTS_CONFIGS, **new.configs}
    return replace(new, partitions=-1 if new.assignments else CHECKPOINTS_PARTITIONS, configs=configs)


def check_kept(name: str, configs: Mapping[str, str]) -> None:
    """Refuse settings with which the cluster would lose what it keeps in a topic of its own."""
    if name == CHECKPOINTS_TOPIC and (fit := unfit_settings(configs)):
        setting, value = next(iter(fit.items()))
        raise Refusal(ErrorCode.INVALID_CONFIG, f"{setting} of {name} must be {value}: else checkpoints are lost.")


def _replicas(
    image: MetadataImage, new: TopicCreation, defaults: TopicDefaults, load: BrokerLoad, partitions_left: int
) -> list[Assignment]:
    if new.assignments:
        if new.partitions != -1 or new.replication_factor != -1:
            raise Refusal(
                ErrorCode.INVALID_REQUEST,
                "With replicas assigned by hand, the numbers of partitions and replicas must both be -1.",
            )
        check_replicas(image, new.assignments, replication_factor=len(new.assignments[0]))
    partitions = len(new.assignments) or _partition_count(new.partitions, defaults.partitions)
    if partitions > partitions_left:
        raise Refusal(
            ErrorCode.INVALID_PARTITIONS,
            f"{partitions} partitions are too many: one request can create {PARTITIONS_PER_REQUEST_MAX}.",
        )
    if new.assignments:
        return list(new.assignments)
    factor = replication_factor_of(image, load, new.replication_factor, defaults.replication_factor)
    return list(place(image, load, partitions=partitions, replication_factor=factor))


def _partition_count(wanted: int, default: int) -> int:
    if wanted == -1:
        return default
    if wanted < 1:
        raise Refusal(ErrorCode.INVALID_PARTITIONS, f"A topic needs at least one partition; {wanted} were asked for.")
    return wanted


def _checked_configs(configs: Mapping[str, str | None], layers: SettingLayers) -> dict[str, str]:
    if not configs:
        return {}
    values = {name: value for name, value in configs.items() if value is not None}
    if len(values) < len(configs):
        missing = sorted(configs.keys() - values.keys())
        raise Refusal(ErrorCode.INVALID_CONFIG, f"{missing[0]} has no value.")
    try:
        check_topic(values, layers)
    except BadSetting as problem:
        raise Refusal(ErrorCode.INVALID_CONFIG, str(problem)) from None
    return values


def config_records(resource: ConfigResource, values: Mapping[str, str | None]) -> Iterable[MetadataRecord]:
    """Return the records that set these values, sorted by name; None takes a value away."""
    return [
        ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=value)
        for name, value in sorted(values.items())
    ]
