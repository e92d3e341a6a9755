"""Scans of topics on a broker in the same process."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import riverlog
from riverlog import Producer
from riverlog.arrow.decoding import decoder
from riverlog.arrow.extras import MissingExtra, has
from riverlog.client.errors import KafkaError, Unreachable
from riverlog.testing import RunningBroker

Rows = Sequence[tuple[int, int, bytes]]
"""Partition, timestamp in milliseconds, value."""


def write(broker: RunningBroker, topic: str, rows: Rows, *, partitions: int = 1) -> str:
    """Fill a new topic, one batch per record, and give the address."""

    async def send() -> None:
        async with Producer(broker.bootstrap_servers) as producer:
            for partition, timestamp_ms, value in rows:
                await producer.send(topic, value=value, key=b"k", partition=partition, timestamp_ms=timestamp_ms)

    broker.create_topic(topic, partitions=partitions)
    asyncio.run(send())
    return broker.bootstrap_servers


def values(scan: riverlog.Scan) -> list[bytes]:
    return scan.to_arrow()["value"].to_pylist()


def test_a_topic_becomes_a_table_in_the_order_of_partitions_and_offsets(riverlog_broker: RunningBroker) -> None:
    rows = [(index % 3, 1_000 + index, b"%d" % index) for index in range(9)]
    servers = write(riverlog_broker, "orders", rows, partitions=3)
    table = riverlog.scan("orders", bootstrap=servers).to_arrow()
    assert table.column_names == ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    assert table["value"].to_pylist() == [b"0", b"3", b"6", b"1", b"4", b"7", b"2", b"5", b"8"]
    assert table["partition"].to_pylist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert table["offset"].to_pylist() == [0, 1, 2] * 3
    assert table["timestamp"][1].as_py() == datetime(1970, 1, 1, 0, 0, 1, 3_000, UTC)
    assert set(table["topic"].to_pylist()) == {"orders"}
    assert values(riverlog.scan("orders", bootstrap=servers, partitions=[2, 0])) == [b"0", b"3", b"6", b"2", b"5", b"8"]


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        ("earliest", "latest", "01234"),
        (2, "latest", "234"),
        (-2, "latest", "34"),
        (0, 3, "012"),
        (99, "latest", ""),
        (3, 1, ""),
        ({0: 1}, {0: 4}, "123"),
        (datetime.fromtimestamp(1.3, UTC), "latest", "23"),  # 4 is older, and comes after 3 all the same
        (datetime.fromtimestamp(1.1, UTC), datetime.fromtimestamp(1.3, UTC), "1"),
        ("1970-01-01T00:00:02Z", "latest", ""),
        ("1h", "latest", ""),
        (timedelta(weeks=4_000), "latest", "01234"),
        ("latest", "latest", ""),
    ],
)
def test_places_are_times_and_offsets(riverlog_broker: RunningBroker, since: Any, until: Any, expected: str) -> None:
    times = [1_000, 1_100, 1_300, 1_400, 1_200]
    servers = write(riverlog_broker, "orders", [(0, at, b"%d" % index) for index, at in enumerate(times)])
    assert b"".join(values(riverlog.scan("orders", since=since, until=until, bootstrap=servers))) == expected.encode()


def test_only_wanted_columns_are_there_and_no_more_rows_than_wanted(riverlog_broker: RunningBroker) -> None:
    servers = write(riverlog_broker, "orders", [(0, 5, b"%d" % index) for index in range(5)])
    scan = riverlog.scan("orders", columns=["offset", "headers"], limit=3, bootstrap=servers)
    assert scan.to_arrow().to_pylist() == [{"offset": offset, "headers": None} for offset in range(3)]
    assert riverlog.scan("orders", limit=0, bootstrap=servers).to_arrow().num_rows == 0


def test_batches_can_be_looked_at_one_by_one_and_left(riverlog_broker: RunningBroker) -> None:
    servers = write(riverlog_broker, "orders", [(0, 5, b"%d" % index) for index in range(5)])
    scan = riverlog.scan("orders", bootstrap=servers)
    assert sum(batch.num_rows for batch in scan) == 5
    for batch in scan:
        assert isinstance(batch, pa.RecordBatch)
        break


def test_it_works_where_a_loop_is_running(riverlog_broker: RunningBroker) -> None:
    servers = write(riverlog_broker, "orders", [(0, 5, b"one")])

    async def at_a_notebook() -> list[bytes]:
        return values(riverlog.scan("orders", bootstrap=servers))

    assert asyncio.run(at_a_notebook()) == [b"one"]


def test_the_kernel_gives_the_same(riverlog_broker: RunningBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    servers = write(riverlog_broker, "orders", [(index % 2, index, b"%d" % index) for index in range(50)], partitions=2)
    scan = riverlog.scan("orders", bootstrap=servers)
    monkeypatch.setattr(decoder, "has", lambda _module: False)
    expected = scan.to_arrow()
    monkeypatch.undo()
    monkeypatch.setattr(decoder, "KERNEL_ROWS_MIN", 0)
    assert scan.to_arrow().equals(expected)


def test_values_that_are_json_become_columns(riverlog_broker: RunningBroker) -> None:
    values_ = [b'{"order": 1, "amount": 2.5}', b'{"order": 2}', b"bad"]
    servers = write(riverlog_broker, "orders", [(0, 5, value) for value in values_])
    fields = {"order": "int64", "amount": "double"}
    scan = riverlog.scan("orders", columns=["offset"], value_schema=fields, bad_values="null", bootstrap=servers)
    assert scan.to_arrow().to_pylist() == [
        {"offset": 0, "order": 1, "amount": 2.5},
        {"offset": 1, "order": 2, "amount": None},
        {"offset": 2, "order": None, "amount": None},
    ]
    with pytest.raises(ValueError, match="the value at offset 2 of orders-0"):
        riverlog.scan("orders", value_schema=fields, bootstrap=servers).to_arrow()


@pytest.mark.parametrize(
    ("module", "method"), [("pandas", "to_pandas"), ("polars", "to_polars"), ("duckdb", "to_duckdb")]
)
def test_other_libraries_take_it_or_are_named(riverlog_broker: RunningBroker, module: str, method: str) -> None:
    servers = write(riverlog_broker, "orders", [(0, 5, b"one"), (0, 6, b"two")])
    read = getattr(riverlog.scan("orders", bootstrap=servers), method)
    if has(module):
        assert read().shape == (2, 7)
    else:
        with pytest.raises(MissingExtra, match=f"{module} is not installed; run: pip install {module}"):
            read()


def test_an_empty_topic_is_an_empty_table(riverlog_broker: RunningBroker) -> None:
    servers = write(riverlog_broker, "orders", [], partitions=4)
    assert riverlog.scan("orders", bootstrap=servers).to_arrow().num_rows == 0
    assert list(riverlog.scan("orders", bootstrap=servers)) == []


def test_mistakes_are_told_before_anything_is_asked() -> None:
    for wrong, sentence in (
        ({"since": "yesterday"}, "'yesterday' is not a time"),
        ({"until": 1.5}, "1.5 is no position in a topic"),
        ({"since": True}, "True is no position in a topic"),
        ({"columns": ["valeu"]}, "there is no column 'valeu'; there are key, value, topic"),
        ({"columns": []}, "at least one"),
        ({"limit": -1}, "limit=-1"),
        ({"isolation_level": "serializable"}, "choose 'read_committed' or 'read_uncommitted'"),
    ):
        with pytest.raises(ValueError, match=sentence):
            riverlog.scan("orders", **wrong)  # type: ignore[arg-type]


def test_what_the_cluster_refuses_is_its_error(riverlog_broker: RunningBroker) -> None:
    servers = write(riverlog_broker, "orders", [])
    with pytest.raises(KafkaError, match="'nothing'"):
        riverlog.scan("nothing", bootstrap=servers).to_arrow()
    with pytest.raises(KafkaError, match="has partitions 0 to 0, not 7"):
        riverlog.scan("orders", partitions=[7], bootstrap=servers).to_arrow()
    with pytest.raises(Unreachable):
        riverlog.scan("orders", bootstrap="127.0.0.1:1").to_arrow()


def test_the_address_may_come_from_the_environment(
    riverlog_broker: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RIVERLOG_BOOTSTRAP_SERVERS", write(riverlog_broker, "orders", [(0, 5, b"one")]))
    assert values(riverlog.scan("orders")) == [b"one"]
