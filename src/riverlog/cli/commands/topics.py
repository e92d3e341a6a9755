"""`topics`: create, list, describe, alter and delete, on any Kafka-compatible cluster."""

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import click

from riverlog.cli.client_settings import made, run
from riverlog.cli.terminal.exits import Trouble, usage
from riverlog.cli.terminal.expressions import pairs
from riverlog.cli.terminal.names import Naming
from riverlog.cli.terminal.options import (
    INT16_MAX,
    INT32_MAX,
    bootstrap_option,
    client_settings_option,
    output_option,
    text_output_option,
)
from riverlog.cli.terminal.render import OutputFormat, Row, draw_table, emit, plural

if TYPE_CHECKING:
    from riverlog.client.admin.admin import ConfigEntry
    from riverlog.client.network.cluster import Partition, Topic

TOPIC: Final = Naming("topic", "--name")
config_option: Final = click.option(
    "--config", multiple=True, metavar="NAME=VALUE", help="A setting of the topic, such as retention.ms=3600000."
)


@click.command
@TOPIC.one
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
@bootstrap_option
@client_settings_option
@output_option
def create(
    name: str | None,
    name_option: str | None,
    partitions: int | None,
    replication_factor: int | None,
    config: tuple[str, ...],
    if_not_exists: bool,
    bootstrap: str,
    settings: tuple[str, ...],
    output: OutputFormat | None,
) -> None:
    """Create a topic."""
    topic = TOPIC.the(name, name_option)
    configs = pairs(config, option="--config")

    async def work() -> Row:
        from riverlog import Admin, KafkaError
        from riverlog.model.errors import ErrorCode

        async with made(Admin, bootstrap, settings) as admin:
            try:
                created = await admin.create_topic(
                    topic, partitions=partitions or -1, replication_factor=replication_factor or -1, configs=configs
                )
            except KafkaError as error:
                if not (if_not_exists and error.code is ErrorCode.TOPIC_ALREADY_EXISTS):
                    raise
                return {"topic": topic, "created": False}
            return {
                "topic": topic,
                "created": True,
                "topic_id": str(created.topic_id),
                "partitions": created.partitions,
                "replication_factor": created.replication_factor,
            }

    row = run(work())
    sentence = f"Topic {topic} exists already."
    if row["created"]:
        count, copies = row["partitions"], row["replication_factor"]
        sentence = f"Created topic {topic}: Partitions={count}, ReplicationFactor={copies}"
    emit([row], output, lambda: print(sentence))


@click.command
@click.option("--internal", is_flag=True, help="Also those that the cluster keeps for itself.")
@bootstrap_option
@client_settings_option
@output_option
def list_topics(internal: bool, bootstrap: str, settings: tuple[str, ...], output: OutputFormat | None) -> None:
    """List the topics."""

    async def work() -> "list[Topic]":
        from riverlog import Admin

        async with made(Admin, bootstrap, settings) as admin:
            return await admin.list_topics(internal=internal)

    rows = [
        {
            "name": topic.name,
            "partitions": len(topic.partitions),
            "replication_factor": len(topic.partitions[0].replicas),
            "internal": topic.is_internal,
        }
        for topic in run(work())
    ]
    columns = ["topic", "partitions", "replication"]
    emit(rows, output, lambda: draw_table(columns, [list(row.values())[:3] for row in rows]))


@click.command
@TOPIC.many
@click.option("--all", "every_setting", is_flag=True, help="All settings, not only the topic's own.")
@bootstrap_option
@client_settings_option
@text_output_option
def describe(
    names: tuple[str, ...],
    names_option: tuple[str, ...],
    every_setting: bool,
    bootstrap: str,
    settings: tuple[str, ...],
    output: OutputFormat | None,
) -> None:
    """Show a topic's partitions and settings.

    One line for each partition: `Partition 0: Leader=1, ISR=[1,2,3]`. Then the settings that were made for this
    topic.
    """
    wanted = TOPIC.all(names, names_option)

    async def work() -> "list[tuple[Topic, dict[str, ConfigEntry]]]":
        from riverlog import Admin

        async with made(Admin, bootstrap, settings) as admin:
            topics = await admin.describe_topics(wanted)
            return [(topic, await admin.describe_configs(topic=topic.name)) for topic in topics]

    rows = [description(topic, configs, every_setting=every_setting) for topic, configs in run(work())]
    # This text is one line per partition by definition; it stays so in a pipe.
    emit(rows, output or OutputFormat.TABLE, lambda: print("\n\n".join(map(lines_of, rows))))


@click.command
@TOPIC.one
@click.option(
    "--partitions", type=click.IntRange(1, INT32_MAX), metavar="N", help="Grow to N partitions; there is no way back."
)
@config_option
@click.option("--delete-config", multiple=True, metavar="NAME", help="Take a setting back to its default.")
@bootstrap_option
@client_settings_option
@output_option
def alter(
    name: str | None,
    name_option: str | None,
    partitions: int | None,
    config: tuple[str, ...],
    delete_config: tuple[str, ...],
    bootstrap: str,
    settings: tuple[str, ...],
    output: OutputFormat | None,
) -> None:
    """Add partitions to a topic, or change its settings.

    Records stay where they are; records with a key may go to another partition than before once there are more.
    """
    topic = TOPIC.the(name, name_option)
    changes: dict[str, str | None] = {**pairs(config, option="--config"), **dict.fromkeys(delete_config)}
    if partitions is None and not changes:
        raise usage("nothing to change: give --partitions, --config or --delete-config")

    async def work() -> None:
        from riverlog import Admin

        async with made(Admin, bootstrap, settings) as admin:
            if changes and partitions is not None:
                await admin.create_partitions(topic, partitions, validate_only=True)  # all or nothing
            if changes:
                await admin.alter_configs(changes, topic=topic)
            if partitions is not None:
                await admin.create_partitions(topic, partitions)

    run(work())
    row: dict[str, object] = {"topic": topic}
    if partitions is not None:
        row["partitions"] = partitions
    if changes:
        row["configs"] = changes
    done = [
        f"{name}={value}" if value is not None else f"{name} back to its default" for name, value in changes.items()
    ]
    done += [f"Partitions={partitions}"] if partitions is not None else []
    emit([row], output, lambda: print(f"Altered topic {topic}: {', '.join(done)}"))


@click.command
@TOPIC.many
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@bootstrap_option
@client_settings_option
@output_option
def delete(
    names: tuple[str, ...],
    names_option: tuple[str, ...],
    yes: bool,
    bootstrap: str,
    settings: tuple[str, ...],
    output: OutputFormat | None,
) -> None:
    """Delete topics with all their records.

    On a terminal it asks first.
    """
    wanted = TOPIC.all(names, names_option)
    if not yes and sys.stdin.isatty():
        print(f"Delete {', '.join(wanted)} with all records? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise Trouble("nothing was deleted")

    async def work() -> None:
        from riverlog import Admin

        async with made(Admin, bootstrap, settings) as admin:
            await admin.delete_topics(wanted)

    run(work())
    rows = [{"topic": name, "deleted": True} for name in wanted]
    emit(rows, output, lambda: print(f"Deleted {plural(len(wanted), 'topic')}: {', '.join(wanted)}"))


def description(topic: "Topic", configs: "Mapping[str, ConfigEntry]", *, every_setting: bool) -> Row:
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
        "partitions": [_partition(each) for each in topic.partitions],
        "configs": {name: entry.value for name, entry in shown.items()},
    }


def lines_of(row: Row) -> str:
    """Write a topic's description, a line for each partition and each setting."""
    partitions, configs = row["partitions"], row["configs"]
    assert isinstance(partitions, list)
    assert isinstance(configs, dict)
    lines = [f"Topic {row['name']}: Partitions={len(partitions)}, ReplicationFactor={row['replication_factor']}"]
    for each in partitions:
        leader = "none" if each["leader"] is None else each["leader"]
        offline = f", Offline={_ids(each['offline'])}" if each["offline"] else ""
        lines.append(f"Partition {each['partition']}: Leader={leader}, ISR={_ids(each['isr'])}{offline}")
    lines += [f"Config {name}={value}" for name, value in configs.items()]
    return "\n".join(lines)


def _partition(partition: "Partition") -> Row:
    return {
        "partition": partition.index,
        "leader": partition.leader if partition.leader >= 0 else None,
        "leader_epoch": partition.leader_epoch,
        "replicas": list(partition.replicas),
        "isr": list(partition.in_sync),
        "offline": list(partition.offline),
    }


def _ids(nodes: Sequence[int]) -> str:
    return f"[{','.join(map(str, nodes))}]"
