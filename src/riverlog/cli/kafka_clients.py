"""The settings of Kafka's clients: which argument of a client here each of them is, and which mean nothing here.

What begins with `security.`, `ssl.` or `sasl.` is read by `client.network.security`.
"""

import re
from typing import Final

PARAMETERS: Final = {
    "acks": "acks",
    "auto.commit.interval.ms": "auto_commit_interval_ms",
    "auto.offset.reset": "auto_offset_reset",
    "batch.size": "batch_bytes_max",
    "buffer.memory": "buffer_bytes_max",
    "client.id": "client_id",
    "compression.gzip.level": "compression_level",
    "compression.lz4.level": "compression_level",
    "compression.type": "compression",
    "compression.zstd.level": "compression_level",
    "default.api.timeout.ms": "timeout_ms",
    "delivery.timeout.ms": "delivery_timeout_ms",
    "enable.auto.commit": "auto_commit",
    "enable.idempotence": "idempotent",
    "fetch.max.bytes": "fetch_bytes_max",
    "fetch.max.wait.ms": "fetch_wait_ms_max",
    "fetch.min.bytes": "fetch_bytes_min",
    "group.id": "group",
    "group.instance.id": "group_instance_id",
    "group.protocol": "group_protocol",
    "group.remote.assignor": "assignor",
    "heartbeat.interval.ms": "heartbeat_interval_ms",
    "isolation.level": "isolation_level",
    "linger.ms": "linger_ms",
    "max.block.ms": "block_ms_max",
    "max.partition.fetch.bytes": "partition_bytes_max",
    "max.poll.interval.ms": "max_poll_interval_ms",
    "max.request.size": "request_bytes_max",
    "metadata.max.age.ms": "metadata_age_max_ms",
    "partition.assignment.strategy": "assignor",
    "partitioner.class": "partitioner",
    "request.timeout.ms": "request_timeout_ms",
    "retry.backoff.ms": "retry_backoff_ms",
    "retry.backoff.max.ms": "retry_backoff_max_ms",
    "session.timeout.ms": "session_timeout_ms",
    "socket.connection.setup.timeout.ms": "connect_timeout_ms",
    "transaction.timeout.ms": "transaction_timeout_ms",
}
"""By Kafka's names, the arguments of clients here; a client without the argument has no such setting."""

CLASSES: Final = {
    "CooperativeStickyAssignor": "cooperative-sticky",
    "RangeAssignor": "range",
    "RoundRobinPartitioner": "round_robin",
    "UniformAssignor": "uniform",
}
"""Kafka's classes, by their last names, as the clients here call them."""

BOOTSTRAP: Final = ("bootstrap.servers", "metadata.broker.list")

WITHOUT_MEANING: Final = frozenset(
    {
        "allow.auto.create.topics", "bootstrap.controllers", "check.crcs", "client.dns.lookup", "client.rack",
        "config.providers", "connections.max.idle.ms", "enable.metrics.push", "exclude.internal.topics",
        "interceptor.classes", "internal.throw.on.fetch.stable.offset.unsupported", "key.deserializer",
        "key.serializer", "max.in.flight.requests.per.connection", "max.poll.records", "metadata.max.idle.ms",
        "metadata.recovery.rebootstrap.trigger.ms", "metadata.recovery.strategy", "metric.reporters",
        "metrics.num.samples", "metrics.recording.level", "metrics.sample.window.ms",
        "partitioner.adaptive.partitioning.enable", "partitioner.availability.timeout.ms", "partitioner.ignore.keys",
        "receive.buffer.bytes", "reconnect.backoff.max.ms", "reconnect.backoff.ms", "retries",
        "send.buffer.bytes", "share.acknowledgement.mode", "share.acquire.mode",
        "socket.connection.setup.timeout.max.ms",
        "transaction.two.phase.commit.enable", "transactional.id", "value.deserializer", "value.serializer",
    }
)  # fmt: skip
"""Settings of Kafka's clients that commands do without; none of them opens a transaction."""

_KAFKAS: Final = {parameter: name for name, parameter in PARAMETERS.items()} | {
    "assignor": "partition.assignment.strategy",
    "compression_level": "compression.gzip.level",
    "timeout_ms": "request.timeout.ms",  # of an admin, which has no other
    "transactional_id": "transactional.id",
}
_ARGUMENT: Final = re.compile(
    rf"\b({'|'.join(name for name in _KAFKAS if '_' in name)}|idempotent)\b(?:=[\"']?(\w+)[\"']?)?"
)


def in_kafkas_names(text: str) -> str:
    """Return a sentence about a client's arguments as one about its settings: `linger_ms` is `linger.ms`."""
    return _ARGUMENT.sub(lambda found: _KAFKAS[found[1]] + (f"={found[2].lower()}" if found[2] else ""), text)
