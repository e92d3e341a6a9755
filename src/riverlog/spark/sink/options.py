"""The options of a sink: those of Spark's Kafka sink, settings of Kafka's producers, and how often a record arrives."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from riverlog.spark.options import KAFKA, BadOption, ClientOptions, Options, check_names, cluster_options

EXACTLY_ONCE: Final = "exactly-once"
AT_LEAST_ONCE: Final = "at-least-once"

CLIENT: Final = {"client_id": "riverlog-spark-sink"}

OF_STREAM: Final = "ofStream"
"""Set where a DataFrame is a batch of a query, in its foreachBatch: it is then committed with the query's batch."""

_STREAM_TIMEOUT_MS: Final = 300_000
_BATCH_TIMEOUT_MS: Final = 900_000
"""As long as a cluster allows unless it is told otherwise (transaction.max.timeout.ms)."""
_BATCH_BYTES: Final = 1_000_000
_REQUEST_BYTES: Final = 4 * 1024 * 1024
_BUFFER_BYTES: Final = 32 * 1024 * 1024
_DELIVERY_MS: Final = 120_000
_PATIENCE_SECONDS_MAX: Final = 30.0
_CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """What a program wants of its sink. It travels to tasks."""

    cluster: ClientOptions
    topic: str | None
    is_exactly_once: bool
    timeout_ms: int
    """How long a transaction may be open."""
    producer: dict[str, Any] = field(default_factory=dict)
    """Arguments of the producer that tasks write with."""
    batch_bytes_max: int = _BATCH_BYTES
    compression: str = "none"
    level: int | None = None
    checkpoint: str | None = None
    query_name: str | None = None
    transactional_id: str | None = None

    @property
    def patience_seconds(self) -> float:
        """How long a cluster that does not answer is tried again before something is begun."""
        return min(_PATIENCE_SECONDS_MAX, int(self.producer["block_ms_max"]) / 1000)


def read_options(given: Mapping[str, str], *, is_stream: bool) -> SinkOptions:
    """Understand what a program has set; BadOption names what cannot be so."""
    options = Options(given)
    check_names(options, _KNOWN, _REFUSED)
    is_exactly_once = options.choice("delivery", (EXACTLY_ONCE, AT_LEAST_ONCE), default=EXACTLY_ONCE) == EXACTLY_ONCE
    compression = options.choice(KAFKA + "compression.type", _CODECS, default="none")
    levels = f"{KAFKA}compression.{compression}.level"
    timeout_ms = options.number(KAFKA + "transaction.timeout.ms") or _timeout_ms(is_stream)
    return SinkOptions(
        cluster=cluster_options(options),
        topic=options.text("topic") or None,
        is_exactly_once=is_exactly_once,
        timeout_ms=timeout_ms,
        producer=_producer(options, is_exactly_once=is_exactly_once),
        batch_bytes_max=options.number(KAFKA + "batch.size", least=1_024) or _BATCH_BYTES,
        compression=compression,
        level=options.number(levels, least=-(2**31)) if levels in _LEVELS else None,
        checkpoint=options.text("checkpointLocation"),
        query_name=options.text("queryName"),
        transactional_id=options.text(KAFKA + "transactional.id"),
    )


def _timeout_ms(is_stream: bool) -> int:
    return _STREAM_TIMEOUT_MS if is_stream else _BATCH_TIMEOUT_MS


def _producer(options: Options, *, is_exactly_once: bool) -> dict[str, Any]:
    acks = options.choice(KAFKA + "acks", ("all", "-1", "1", "0"), default="all")
    idempotent = options.flag(KAFKA + "enable.idempotence", default=acks in ("all", "-1"))
    if is_exactly_once and (acks not in ("all", "-1") or not idempotent):
        name = "acks" if acks not in ("all", "-1") else "enable.idempotence"
        raise BadOption(
            KAFKA + name, options.text(KAFKA + name), f"exactly once needs all; set delivery={AT_LEAST_ONCE} with it"
        )
    delivery_ms = options.number(KAFKA + "delivery.timeout.ms") or _DELIVERY_MS
    producer: dict[str, Any] = {
        "delivery_timeout_ms": delivery_ms,
        "block_ms_max": options.number(KAFKA + "max.block.ms") or delivery_ms,
        "request_bytes_max": options.number(KAFKA + "max.request.size", least=1_024) or _REQUEST_BYTES,
        "buffer_bytes_max": options.number(KAFKA + "buffer.memory", least=1_024) or _BUFFER_BYTES,
    }
    if not is_exactly_once:
        producer |= {"acks": acks, "idempotent": idempotent}
    request_ms = options.number(KAFKA + "request.timeout.ms")
    if request_ms is None and delivery_ms < 30_000:
        producer["request_timeout_ms"] = delivery_ms
    elif request_ms is not None and request_ms > delivery_ms:
        raise BadOption(
            KAFKA + "delivery.timeout.ms", str(delivery_ms), f"{KAFKA}request.timeout.ms={request_ms} is longer"
        )
    return producer


_LEVELS: Final = tuple(f"{KAFKA}compression.{codec}.level" for codec in ("gzip", "lz4", "zstd"))
_KNOWN: Final = (
    "topic",
    "delivery",
    "includeHeaders",
    "checkpointLocation",
    "queryName",
    OF_STREAM,
    *_LEVELS,
    *(
        KAFKA + name
        for name in (
            "acks",
            "batch.size",
            "buffer.memory",
            "compression.type",
            "delivery.timeout.ms",
            "enable.idempotence",
            "max.block.ms",
            "max.request.size",
            "transaction.timeout.ms",
            "transactional.id",
        )
    ),
)
"""`includeHeaders` is Spark's: headers are written where the column is there."""
_REFUSED: Final = {
    "path": 'records go to topics, which have no path: set the option "topic", and save() without an argument',
    "kafka.partitioner.class": 'keys decide by murmur2, as in every client; a column "partition" says otherwise',
}
