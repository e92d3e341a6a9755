"""A topic as columns: `riverlog.scan` beside a loop over confluent-kafka's consumer, and the kernel alone."""

import time
from typing import Final

import riverlog
from bench import clients, loadgen
from bench.clients import fresh_topic
from bench.frames import produce_load
from bench.probes import BATCH_BYTES
from bench.trial import Failed, Trial, Values

VALUE_BYTES: Final = 100
CONSUMED_ROWS_PER_SECOND: Final = 1_000_000
BATCHES_MIN: Final = 3
"""The consumer's clock starts behind its first ten thousand records."""
KERNEL_SECONDS: Final = 0.5
MILLION: Final = 1_000_000


def scan(trial: Trial) -> Values:
    """Read the same topic by a consumer and as a table; the kernel was loaded before."""
    records = BATCH_BYTES // VALUE_BYTES
    with fresh_topic(trial.node) as topic:
        batches = max(BATCHES_MIN, round(trial.seconds * CONSUMED_ROWS_PER_SECOND / records))
        load = produce_load(topic, records=records, value_bytes=VALUE_BYTES)
        loadgen.replay(load, trial.node, in_flight=4, seconds=60, requests_max=batches)
        consumed = clients.consume(trial.node, topic, value_bytes=VALUE_BYTES)
        kernel = kernel_rows_per_second(records)
        seconds = _scan_seconds(trial, topic, batches * records)
    by_consumer, by_scan = consumed.records / consumed.seconds, batches * records / seconds
    return {
        "scan": by_scan / MILLION,
        "consumer": by_consumer / MILLION,
        "gain": by_scan / by_consumer,
        "kernel": kernel / MILLION,
    }


def kernel_rows_per_second(records: int) -> float:
    """Decode one batch to Arrow over and over, checksum included."""
    from riverlog.arrow.columns import USUAL, Cut, schema_of
    from riverlog.arrow.decoding.compiled_decoder import record_batch
    from riverlog.arrow.decoding.decoder import record_batches
    from riverlog.client.consumer.fetched_records import Chunk
    from riverlog.model.ids import Offset, TopicPartition
    from riverlog.records.record import BatchBuilder

    builder = BatchBuilder()
    for value in clients.values_of(VALUE_BYTES) * (records // clients.VALUES_DISTINCT):
        builder.append(value[:8], value, timestamp_ms=1_000 + builder.count)
    data, here = bytes(builder.build()), TopicPartition("bench", 0)
    schema, whole = schema_of(USUAL), Cut(Offset(0), Offset(builder.count))
    rows, begin = -builder.count, time.perf_counter()  # the first time loads it, and does not count
    while rows <= 0 or time.perf_counter() - begin < KERNEL_SECONDS:
        chunk = Chunk(data, [], read_committed=True)
        rows += sum(batch.num_rows for batch in record_batches(record_batch, chunk, here, schema, whole))
        if rows == 0:
            begin = time.perf_counter()
    return rows / (time.perf_counter() - begin)


def _scan_seconds(trial: Trial, topic: str, rows: int) -> float:
    begin = time.perf_counter()
    found = riverlog.scan(topic, bootstrap=f"{trial.node.host}:{trial.node.port}").to_arrow()
    seconds = time.perf_counter() - begin
    if found.num_rows != rows:
        raise Failed(f"{rows} records were written, but the table has {found.num_rows} rows")
    return seconds
