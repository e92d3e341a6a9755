"""`topics`: create, list, describe, alter and delete, on any Kafka-compatible cluster."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import click

from riverlog.cli.cluster_options import ClusterOptions, cluster_options, cluster_text_options
from riverlog.cli.idle_settings import name_idle_settings
from riverlog.cli.internal_topics import check_internal, internal_option
from riverlog.cli.refusals import raise_failures
from riverlog.cli.terminal.colours import wrong
from riverlog.cli.terminal.exits import CommandError, ExitCode, usage_error
from riverlog.cli.terminal.expressions import pairs
from riverlog.cli.terminal.names import Naming
from riverlog.cli.terminal.options import INT16_MAX, INT32_MAX, yes_option
from riverlog.cli.terminal.render import Row, size_text
from riverlog.cli.terminal.screen import watch_options
from riverlog.cli.terminal.suggestions import did_you_mean
from riverlog.cli.topic_sizes import PartitionSize, partition_sizes
from riverlog.model.ids import TopicPartition
from riverlog.model.kafka_settings import TOPIC_SETTINGS_WITHOUT_MEANING

if TYPE_CHECKING:
    from riverlog import Admin, KafkaError
    from riverlog.client.admin.admin import ConfigEntry
    from riverlog.client.network.cluster import Partition, Topic

TOPIC: Final = Naming("topic", "--name")
config_option: Final = click.option(
    "--config", multiple=True, metavar="NAME=VALUE", help="A setting of the topic, such as retention.ms=3600000."
)


@click.command
@TOPIC.many
@click.option(
    "--partitions", type=click.IntRange(1, INT32_MAX), metavar="N", help="How many; the cluster's default without it."
)
@click.option(
    "--replication-factor",
    type=click.IntRange(1, INT16_MAX),
    metavar="N",
    help="Copies of each partition; the cluster's default without it.",
)
@config_option
@click.option("--if-not-exists", is_flag=True, help="Leave a topic alone that exists already.")
@cluster_options
def create(
    names: list[str],
    partitions: int | None,
    replication_factor: int | None,
    config: tuple[str, ...],
    if_not_exists: bool,
    cluster: ClusterOptions,
) -> None:
    """Create topics."""
    configs = pairs(config, option="--config")
    failures: dict[str, KafkaError] = {}

    async def work(admin: "Admin") -> list[Row]:
        return [row for name in names if (row := await make(admin, name)) is not None]

    async def make(admin: "Admin", name: str) -> Row | None:
        from riverlog import KafkaError
        from riverlog.model.errors import ErrorCode

        try:
            created = await admin.create_topic(
                name, partitions=partitions or -1, replication_factor=replication_factor or -1, configs=configs
            )
        except KafkaError as error:
            if if_not_exists and error.code is ErrorCode.TOPIC_ALREADY_EXISTS:
                return {"topic": name, "created": False}
            failures[name] = error
            return None
        await name_idle_settings(admin, name, configs)
        return {
            "topic": name,
            "created": True,
            "topic_id": str(created.topic_id),
            "partitions": created.partitions,
            "replication_factor": created.replication_factor,
        }

    rows = cluster.ask(work)
    cluster.emit(rows, lambda: print(*map(_created, rows), sep="\n", end="\n" if rows else ""))
    with cluster.errors():
        raise_failures(failures, len(names))


_NO_TOPICS: Final = "There are no topics; `riverlog topics create NAME` creates one"


@click.command
@click.option("--internal", is_flag=True, help="List internal topics too.")
@cluster_options
def list_topics(internal: bool, cluster: ClusterOptions) -> None:
    """List the topics."""
    rows = [
        {
            "name": topic.name,
            "partitions": len(topic.partitions),
            "replication_factor": len(topic.partitions[0].replicas),
            "internal": topic.is_internal,
        }
        for topic in cluster.ask(lambda admin: admin.list_topics(internal=internal))
    ]
    cluster.emit_table(rows, ["topic", "partitions", "replication"], _NO_TOPICS)


@click.command
@TOPIC.many
@click.option("--all", "every_setting", is_flag=True, help="All settings, not only the topic's own.")
@watch_options
@cluster_text_options
def describe(
    names: list[str],
    every_setting: bool,
    watch: bool,
    interval: float,
    cluster: ClusterOptions,
) -> None:
    """Show the partitions and settings of topics.

    One line for each partition: `Partition 0: Leader=1, ISR=[1,2,3], Start=0, End=7, Records=7, Size=1.2 KiB`. Then the
    settings that were made for this topic. Records counts the offsets between start and end; compaction and
    transactions leave fewer.
    """

    async def work(admin: "Admin") -> list[Row]:
        topics = await admin.describe_topics(names)
        sizes = await partition_sizes(admin, topics)
        configs = [await admin.describe_configs(topic=topic.name) for topic in topics]
        return [
            description(topic, each, sizes, every_setting=every_setting)
            for topic, each in zip(topics, configs, strict=True)
        ]

    def present(rows: list[Row]) -> None:
        cluster.emit(rows, lambda: print("\n\n".join(map(lines_of, rows))))

    cluster.show(work, present, topics=names, watch=watch, interval=interval)


@click.command
@TOPIC.one
@click.option(
    "--partitions", type=click.IntRange(1, INT32_MAX), metavar="N", help="Grow to N partitions; there is no way back."
)
@config_option
@click.option("--delete-config", multiple=True, metavar="NAME", help="Take a setting back to its default.")
@internal_option
@cluster_options
def alter(
    name: str,
    partitions: int | None,
    config: tuple[str, ...],
    delete_config: tuple[str, ...],
    internal: bool,
    cluster: ClusterOptions,
) -> None:
    """Add partitions to a topic, or change its settings.

    Records stay where they are; records with a key may go to another partition than before once there are more.
    """
    configs = pairs(config, option="--config")
    if both := configs.keys() & set(delete_config):
        raise usage_error(f"--config and --delete-config both name {min(both)}; give one of them")
    changes: dict[str, str | None] = {**configs, **dict.fromkeys(delete_config)}
    if partitions is None and not changes:
        raise usage_error("nothing to change: give --partitions, --config or --delete-config")

    async def work(admin: "Admin") -> None:
        await check_internal(admin, [name], internal=internal, undone="Nothing was changed")
        if delete_config:
            _check_known(delete_config, await admin.describe_configs(topic=name))
        if changes and partitions is not None:
            await admin.create_partitions(name, partitions, validate_only=True)  # all or nothing
        if changes:
            await admin.alter_configs(changes, topic=name)
            await name_idle_settings(admin, name, changes)
        if partitions is not None:
            await admin.create_partitions(name, partitions)

    cluster.ask(work, topics=[name])
    row: dict[str, object] = {"topic": name}
    if partitions is not None:
        row["partitions"] = partitions
    if changes:
        row["configs"] = changes
    done = [
        f"{each}={value}" if value is not None else f"{each} back to its default" for each, value in changes.items()
    ]
    done += [f"Partitions={partitions}"] if partitions is not None else []
    cluster.emit([row], lambda: print(f"Altered topic {name}: {', '.join(done)}"))


@click.command
@TOPIC.many
@internal_option
@yes_option
@cluster_options
def delete(
    names: list[str],
    internal: bool,
    yes: bool,
    cluster: ClusterOptions,
) -> None:
    """Delete topics with all their records.

    On a terminal it asks first; in a script it acts at once. Topics that the cluster keeps for itself, such as
    __consumer_offsets, are deleted only with --internal: all groups would lose their committed offsets.
    """
    cluster.ask(lambda admin: check_internal(admin, names, internal=internal, undone="Nothing was deleted"))
    cluster.delete("topic", names, "records", lambda admin: admin.delete_topics(names), yes=yes)


def _created(row: Row) -> str:
    if not row["created"]:
        return f"Topic {row['topic']} exists already."
    count, copies = row["partitions"], row["replication_factor"]
    return f"Created topic {row['topic']}: Partitions={count}, ReplicationFactor={copies}"


def _check_known(names: Sequence[str], configs: "Mapping[str, ConfigEntry]") -> None:
    """Refuse a setting that a topic does not have: clusters take it back to its default without a word."""
    for name in names:
        if name not in configs and name not in TOPIC_SETTINGS_WITHOUT_MEANING:
            hint = did_you_mean(name, configs)
            raise CommandError(f"nothing was changed: topics have no setting {name}{hint}", ExitCode.REFUSED)


def description(
    topic: "Topic",
    configs: "Mapping[str, ConfigEntry]",
    sizes: Mapping[TopicPartition, PartitionSize],
    *,
    every_setting: bool,
) -> Row:
    """Gather what is to be said about a topic."""
    from riverlog.client.admin.admin import ConfigSource

    shown = {
        name: entry for name, entry in sorted(configs.items()) if every_setting or entry.source == ConfigSource.TOPIC
    }
    return {
        "name": topic.name,
        "topic_id": str(topic.topic_id),
        "internal": topic.is_internal,
        "replication_factor": len(topic.partitions[0].replicas),
        "partitions": [
            _partition(each, sizes.get(TopicPartition(topic.name, each.index))) for each in topic.partitions
        ],
        "configs": {name: entry.value for name, entry in shown.items()},
    }


def lines_of(row: Row) -> str:
    """Write a topic's description, a line for each partition and each setting."""
    partitions, configs = row["partitions"], row["configs"]
    assert isinstance(partitions, list)
    assert isinstance(configs, dict)
    internal = ", Internal=true" if row["internal"] else ""
    lines = [
        f"Topic {row['name']}: Partitions={len(partitions)}, ReplicationFactor={row['replication_factor']}{internal}"
    ]
    for each in partitions:
        leader = wrong("none") if each["leader"] is None else each["leader"]
        offline = f", {wrong('Offline=' + _ids(each['offline']))}" if each["offline"] else ""
        size = f", Size={size_text(each['size'])}" if each["size"] is not None else ""
        offsets = f", Start={each['start']}, End={each['end']}, Records={each['records']}{size}"
        shown = offsets if each["end"] is not None else ""
        lines.append(f"Partition {each['partition']}: Leader={leader}, ISR={_ids(each['isr'])}{offline}{shown}")
    lines += [f"Config {name}={value}" for name, value in configs.items()]
    return "\n".join(lines)


def _partition(partition: "Partition", size: PartitionSize | None) -> Row:
    return {
        "partition": partition.index,
        "leader": partition.leader if partition.leader >= 0 else None,
        "leader_epoch": partition.leader_epoch,
        "replicas": list(partition.replicas),
        "isr": list(partition.in_sync),
        "offline": list(partition.offline),
        "start": size and size.start,
        "end": size and size.end,
        "records": size and size.records,
        "size": size and size.size,
    }


def _ids(nodes: Sequence[int]) -> str:
    return f"[{','.join(map(str, nodes))}]"
