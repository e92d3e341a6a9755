"""`cluster metadata`: what the cluster remembers of brokers, topics, partitions and settings, as one document."""

from typing import TYPE_CHECKING, NamedTuple

import click

from riverlog.cli.cluster_options import ClusterOptions, cluster_options
from riverlog.cli.metadata_records import described
from riverlog.cli.terminal.exits import CommandError, ExitCode
from riverlog.cli.terminal.options import controller_option
from riverlog.cli.terminal.render import Row, plural
from riverlog.cli.terminal.tables import draw_table
from riverlog.model.ids import NO_NODE

if TYPE_CHECKING:
    from riverlog import Admin
    from riverlog.client.admin.admin import ClusterDescription
    from riverlog.client.network.cluster import Topic


class MetadataFacts(NamedTuple):
    """What the cluster was asked; the settings are those that were made for each topic."""

    cluster: "ClusterDescription"
    topics: "list[Topic]"
    settings: dict[str, dict[str, str | None]]


@click.command
@click.option("--records", is_flag=True, help="Every record, a line each: brokers, controllers and features as well.")
@controller_option
@cluster_options
def metadata(records: bool, controllers: str | None, cluster: ClusterOptions) -> None:
    """Show the metadata of the cluster: brokers, topics, partitions, settings.

    Metadata is kept in a log, not in a file; this is what its records add up to. With -o json it is one document, with
    the leader, the leader epoch, the replicas and those in sync of every partition. With --records it is all that the
    controllers have in memory, asked from the active one.
    """
    if records or controllers is not None:
        _show_records(controllers, cluster)
        return

    async def work(admin: "Admin") -> MetadataFacts:
        from riverlog.client.admin.admin import ConfigSource

        topics = await admin.list_topics(internal=True)
        settings = {}
        for topic in topics:
            entries = await admin.describe_configs(topic=topic.name)
            made = (entry for entry in entries.values() if entry.source is ConfigSource.TOPIC)
            settings[topic.name] = {entry.name: entry.value for entry in made}
        return MetadataFacts(await admin.describe_cluster(), topics, settings)

    document = document_of(cluster.ask(work))
    cluster.emit([document], lambda: _show(document))


def _show_records(controllers: str | None, cluster: ClusterOptions) -> None:
    """Print a line for each record that the committed metadata add up to."""
    from riverlog.cli.metadata_reader import read_metadata
    from riverlog.metadata.snapshot import snapshot_records

    image = cluster.ask_controllers(controllers or ",".join(cluster.ask(_controllers)), read_metadata)
    rows: list[Row] = [{"type": type_, **fields} for type_, fields, _ in map(described, snapshot_records(image))]
    cluster.emit(rows, lambda: _show_rows(rows))


async def _controllers(admin: "Admin") -> list[str]:
    """Return where the voters listen."""
    quorum = await admin.describe_quorum()
    found = [str(endpoints[0].address) for endpoints in quorum.endpoints.values() if endpoints]
    if not found:
        raise CommandError(
            "the controllers of this cluster have no listener that could be asked; without --records brokers are asked",
            ExitCode.REFUSED,
        )
    return found


def _show_rows(rows: list[Row]) -> None:
    for row in rows:
        fields = ", ".join(f"{name}={value}" for name, value in row.items() if name != "type")
        print(f"{row['type']}: {fields}")


def document_of(facts: MetadataFacts) -> Row:
    """Return the metadata as one document."""
    return {
        "cluster_id": facts.cluster.cluster_id,
        "controller": _or_none(facts.cluster.controller),
        "brokers": [
            {"id": broker.node_id, "address": str(broker.address), "rack": broker.rack}
            for broker in facts.cluster.brokers
        ],
        "topics": [
            {
                "topic": topic.name,
                "topic_id": str(topic.topic_id),
                "internal": topic.is_internal,
                "settings": facts.settings[topic.name],
                "partitions": [
                    {
                        "partition": partition.index,
                        "leader": _or_none(partition.leader),
                        "leader_epoch": partition.leader_epoch,
                        "replicas": list(partition.replicas),
                        "isr": list(partition.in_sync),
                    }
                    for partition in topic.partitions
                ],
            }
            for topic in sorted(facts.topics, key=lambda each: each.name)
        ],
    }


def _or_none(node: int) -> int | None:
    return None if node == NO_NODE else node


def _show(document: Row) -> None:
    topics = document["topics"]
    assert isinstance(topics, list)
    print(f"Cluster {document['cluster_id']}: {plural(len(topics), 'topic')}; -o json prints every partition\n")
    draw_table(
        ["topic", "partitions", "settings", "id"],
        [
            (
                topic["topic"],
                len(topic["partitions"]),
                ", ".join(f"{name}={value}" for name, value in topic["settings"].items()),
                topic["topic_id"],
            )
            for topic in topics
        ],
    )
