"""`cluster status`: who is there, what is led, how full disks are; `cluster under-replicated`: what lacks copies."""

import time
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from riverlog.cli.cluster_options import ClusterOptions, cluster_options
from riverlog.cli.terminal.colours import Wrong, wrong
from riverlog.cli.terminal.options import controller_option
from riverlog.cli.terminal.render import Row, plural, size_text
from riverlog.cli.terminal.screen import watch_options
from riverlog.cli.terminal.tables import draw_table
from riverlog.client.errors import KafkaError
from riverlog.client.reasons import reason
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_NODE, Address
from riverlog.model.uuids import encode_uuid

if TYPE_CHECKING:
    from riverlog import Admin
    from riverlog.client.admin.admin import ClusterDescription, LogDirectoryDescription
    from riverlog.client.admin.controllers import ControllerAdmin
    from riverlog.client.admin.quorum import FeatureDescription, QuorumDescription, QuorumReplica
    from riverlog.client.network.cluster import Topic


_NO_QUORUM: Final = (ErrorCode.UNSUPPORTED_VERSION, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


class ClusterFacts(NamedTuple):
    """What the cluster was asked."""

    cluster: "ClusterDescription"
    quorum: "QuorumDescription | None"
    """None where the cluster keeps its metadata otherwise, or does not tell."""
    topics: "list[Topic]"
    directories: "list[LogDirectoryDescription]"
    features: "FeatureDescription"


@click.command
@watch_options
@controller_option
@cluster_options
def status(watch: bool, interval: float, controllers: str | None, cluster: ClusterOptions) -> None:
    """Show brokers, quorum, partitions and log directories.

    With --bootstrap-controller it shows the quorum and the features alone, also where no broker runs.
    """

    async def work(admin: "Admin") -> ClusterFacts:
        topics = await admin.list_topics(internal=True)
        quorum = await _quorum_of(admin)
        described, features = await admin.describe_cluster(fenced=True), await admin.describe_features()
        return ClusterFacts(described, quorum, topics, await admin.describe_log_dirs(), features)

    def present(facts: ClusterFacts) -> None:
        row = summary(facts)
        cluster.emit([row], lambda: _show(facts, row))

    async def ask_controllers(admin: "ControllerAdmin") -> "tuple[QuorumDescription, FeatureDescription]":
        return await admin.describe_quorum(), await admin.describe_features()

    def present_quorum(answer: "tuple[QuorumDescription, FeatureDescription]") -> None:
        quorum, features = answer
        row = {"quorum": _quorum_row(quorum), "features": _feature_row(features)}

        def text() -> None:
            _show_quorum(quorum)
            _show_features(features)

        cluster.emit([row], text)

    if controllers is not None:
        cluster.show_controllers(controllers, ask_controllers, present_quorum, watch=watch, interval=interval)
    else:
        cluster.show(work, present, watch=watch, interval=interval)


@click.command
@watch_options
@cluster_options
def under_replicated(watch: bool, interval: float, cluster: ClusterOptions) -> None:
    """List partitions that lack replicas or a leader."""

    def present(topics: "list[Topic]") -> None:
        rows = lacking(topics)
        cluster.emit(rows, lambda: _show_lacking(rows))

    cluster.show(lambda admin: admin.list_topics(internal=True), present, watch=watch, interval=interval)


def lacking(topics: "list[Topic]") -> list[Row]:
    """Return a row for each partition with fewer copies than it should have."""
    return [
        {
            "topic": topic.name,
            "partition": partition.index,
            "leader": None if partition.leader == NO_NODE else partition.leader,
            "replicas": list(partition.replicas),
            "isr": list(partition.in_sync),
        }
        for topic in topics
        for partition in topic.partitions
        if partition.leader == NO_NODE or len(partition.in_sync) < len(partition.replicas)
    ]


def summary(facts: ClusterFacts) -> Row:
    """Count what was answered."""
    partitions = [partition for topic in facts.topics for partition in topic.partitions]
    controller = facts.cluster.controller
    return {
        "cluster_id": facts.cluster.cluster_id,
        "controller": None if controller == NO_NODE else controller,
        "brokers": [
            {
                "id": broker.node_id,
                "address": str(broker.address),
                "rack": broker.rack,
                "fenced": broker.node_id in facts.cluster.fenced,
            }
            for broker in facts.cluster.brokers
        ],
        "quorum": _quorum_row(facts.quorum),
        "features": _feature_row(facts.features),
        "topics": len(facts.topics),
        "partitions": len(partitions),
        "offline_partitions": sum(partition.leader == NO_NODE for partition in partitions),
        "under_replicated_partitions": sum(len(each.in_sync) < len(each.replicas) for each in partitions),
        "log_dirs": [
            {
                "broker": directory.node_id,
                "path": directory.path,
                "partitions": len(directory.partitions),
                "bytes": sum(directory.partitions.values()),
                "usable_bytes": _known(directory.usable_bytes),
                "total_bytes": _known(directory.total_bytes),
                "full": directory.is_full,
                "error": directory.error.name if directory.error else None,
            }
            for directory in facts.directories
        ],
    }


async def _quorum_of(admin: "Admin") -> "QuorumDescription | None":
    try:
        return await admin.describe_quorum()
    except KafkaError as error:
        if error.code in _NO_QUORUM:
            return None
        raise


def _quorum_row(quorum: "QuorumDescription | None") -> Row | None:
    if quorum is None:
        return None
    return {
        "leader": None if quorum.leader == NO_NODE else quorum.leader,
        "epoch": quorum.epoch,
        "high_watermark": quorum.high_watermark,
        **{
            kind: [_replica_row(quorum, each) for each in replicas]
            for kind, replicas in (("voters", quorum.voters), ("observers", quorum.observers))
        },
    }


def _feature_row(features: "FeatureDescription") -> Row:
    return {
        "epoch": features.epoch,
        "finalized": dict(sorted(features.finalized.items())),
        "supported": {name: list(levels) for name, levels in sorted(features.supported.items())},
    }


def _replica_row(quorum: "QuorumDescription", replica: "QuorumReplica") -> Row:
    endpoints = quorum.endpoints.get(replica.node_id, ())
    return {
        "id": replica.node_id,
        "directory_id": encode_uuid(replica.directory_id) if replica.directory_id.int else None,
        "addresses": [str(each.address) for each in endpoints],
        "end_offset": replica.end_offset,
        "lag": quorum.lag(replica),
        "last_fetch_ms": _known(replica.last_fetch_ms),
        "last_caught_up_ms": _known(replica.last_caught_up_ms),
    }


def _show_quorum(quorum: "QuorumDescription") -> None:
    leader = wrong("nobody leads") if quorum.leader == NO_NODE else f"node {quorum.leader} leads"
    voters = plural(len(quorum.voters), "voter")
    print(f"Metadata: {leader} in epoch {quorum.epoch}, {voters}, committed up to offset {quorum.high_watermark}")
    if len(quorum.voters) + len(quorum.observers) > 1:
        rows = [
            (
                each.node_id,
                kind,
                encode_uuid(each.directory_id) if each.directory_id.int else "",
                each.end_offset,
                quorum.lag(each),
                "" if each.node_id == quorum.leader else _ago(each.last_fetch_ms),
            )
            for kind, replicas in (("voter", quorum.voters), ("observer", quorum.observers))
            for each in replicas
        ]
        draw_table(["node", "role", "directory id", "end offset", "lag", "last fetch"], rows)
        print()


def _show_features(features: "FeatureDescription") -> None:
    levels = [f"{name}={level}" for name, level in sorted(features.finalized.items())]
    print(f"Features: {', '.join(levels) or 'none'}")


def _show_lacking(rows: list[Row]) -> None:
    if not rows:
        print("Every partition has a leader and all its replicas in sync.")
        return
    draw_table(
        ["topic", "partition", "leader", "replicas", "in sync"],
        [
            (
                row["topic"],
                row["partition"],
                Wrong("none") if row["leader"] is None else row["leader"],
                str(row["replicas"]),
                str(row["isr"]),
            )
            for row in rows
        ],
    )


def _show(facts: ClusterFacts, row: Row) -> None:
    known = f"controller is broker {row['controller']}"
    controller = wrong("there is no controller") if row["controller"] is None else known
    print(f"Cluster {row['cluster_id']}; {controller}")
    if facts.quorum is not None:
        _show_quorum(facts.quorum)
    _show_features(facts.features)
    partitions = sum(len(topic.partitions) for topic in facts.topics)
    print(
        f"{plural(len(facts.topics), 'topic')}, {plural(partitions, 'partition')}, "
        f"{_none_is_well(row['offline_partitions'], 'offline')}, "
        f"{_none_is_well(row['under_replicated_partitions'], 'under-replicated')}\n"
    )
    brokers = [(each.node_id, Address(each.host, each.port), each.rack or "") for each in facts.cluster.brokers]
    if facts.cluster.fenced:
        states = ["", Wrong("fenced")]
        rows = [(*broker, states[broker[0] in facts.cluster.fenced]) for broker in brokers]
        draw_table(["broker", "address", "rack", "state"], rows)
    else:
        draw_table(["broker", "address", "rack"], brokers)
    print()
    draw_table(
        ["broker", "log directory", "partitions", "size", "free"],
        [
            (
                directory.node_id,
                directory.path,
                len(directory.partitions),
                size_text(sum(directory.partitions.values())),
                _free(directory),
            )
            for directory in facts.directories
        ],
    )


def _ago(moment_ms: int) -> str:
    """Return how long ago something was, by the clock of this machine; nothing where that is unknown."""
    return "" if moment_ms < 0 else f"{max(0.0, time.time() - moment_ms / 1000):.1f} s ago"


def _none_is_well(count: object, what: str) -> str:
    return wrong(f"{count} {what}") if count else f"{count} {what}"


def _free(directory: "LogDirectoryDescription") -> str:
    if directory.error:
        return Wrong(reason(directory.error))
    if directory.is_full:
        return Wrong("full: no writes")
    if directory.usable_bytes < 0 or directory.total_bytes < 0:
        return ""
    return f"{size_text(directory.usable_bytes)} of {size_text(directory.total_bytes)}"


def _known(count: int) -> int | None:
    return None if count < 0 else count
