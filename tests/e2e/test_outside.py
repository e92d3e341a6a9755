"""What Prometheus, a load balancer and an operator see of a node that works."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from prometheus_client.parser import text_string_to_metric_families

from riverlog.checkpoints.remote import RemoteStore
from riverlog.observe.metrics import Metric, MetricType
from tests.e2e.clients import create_topic, read_all, send
from tests.support.node import Node

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with Node(tmp_path_factory.mktemp("node")) as node:
        create_topic(node.bootstrap, "orders", partitions=2)
        send(node.bootstrap, "orders", [b"a", b"b", b"c"], partition=1)
        read_all(node.bootstrap, TopicPartition("orders", 1))
        yield node


def get(node: Node, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(node.addresses["metrics"] + path, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def scrape(node: Node) -> Samples:
    status, text = get(node, "/metrics")
    assert status == 200
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def labels(**values: str) -> frozenset[tuple[str, str]]:
    return frozenset(values.items())


def test_a_partition_shows_its_traffic(node: Node) -> None:
    seen = scrape(node)
    here = labels(topic="orders", partition="1")
    assert seen["riverlog_partition_messages_in_total", here] == 3
    assert seen["riverlog_partition_bytes_in_total", here] > 0
    assert seen["riverlog_partition_bytes_out_total", here] >= seen["riverlog_partition_bytes_in_total", here]
    assert seen["riverlog_partition_messages_out_total", here] >= 3
    assert seen["riverlog_partition_size_bytes", here] == seen["riverlog_partition_bytes_in_total", here]
    assert seen["kafka_topic_partition_current_offset", here] == 3
    assert seen["kafka_topic_partition_oldest_offset", here] == 0
    assert seen["kafka_topic_partitions", labels(topic="orders")] == 2


def test_requests_are_counted_and_timed_by_api(node: Node) -> None:
    seen = scrape(node)
    for api in ("Produce", "Fetch", "Metadata", "ApiVersions", "CreateTopics"):
        count = seen["riverlog_requests_total", labels(api=api)]
        assert count >= 1
        assert seen["riverlog_request_seconds_count", labels(api=api)] == count
        for stage in ("queue", "handle", "wait", "send"):
            assert seen["riverlog_request_stage_seconds_count", labels(api=api, stage=stage)] == count


def test_errors_are_counted_by_code(node: Node) -> None:
    at = ("riverlog_request_errors_total", labels(api="CreateTopics", error="TOPIC_ALREADY_EXISTS"))
    before = scrape(node).get(at, 0)
    with pytest.raises(Exception, match="TOPIC_ALREADY_EXISTS"):
        create_topic(node.bootstrap, "orders")
    assert scrape(node)[at] == before + 1


def test_the_process_and_its_connections_are_seen(node: Node) -> None:
    seen = scrape(node)
    assert seen["riverlog_connections_accepted_total", labels()] >= 3
    assert 0 < seen["riverlog_startup_seconds", labels()] < 20
    assert seen["process_resident_memory_bytes", labels()] > 10_000_000
    assert seen["kafka_brokers", labels()] == 1
    assert seen["riverlog_log_directory_online", labels(directory=str(node.data))] == 1


def test_every_metric_of_the_table_is_there(node: Node) -> None:
    reader = Consumer({"bootstrap.servers": node.bootstrap, "group.id": "readers", "log_level": 0})
    reader.commit(offsets=[TopicPartition("orders", 1, 1)], asynchronous=False)
    reader.close()
    writer = Producer({"bootstrap.servers": node.bootstrap, "transactional.id": "slow writer", "log_level": 0})
    writer.init_transactions()
    writer.begin_transaction()
    writer.produce("orders", b"d", partition=1)
    writer.flush()
    with RemoteStore(node.addresses["checkpoints"]) as store:
        store.make_folder("/pipelines/seen")
        told = ("batch", "batch_at_ms", "batch_ms", "rows_per_second", "watermark_ms", "state_rows")
        store.report(
            "/pipelines/seen", {"query": "q", "run": "r", "state": "running", "began_ms": 1, **dict.fromkeys(told, 1)}
        )
    names = {name for name, _ in scrape(node)}  # what is open holds readers back, and that has a metric
    writer.abort_transaction()
    for metric in set(Metric) - {Metric.ERRORS}:  # there is no series of errors until there is an error
        assert metric.metric + ("_count" if metric.kind is MetricType.HISTOGRAM else "") in names


def test_health_and_readiness(node: Node) -> None:
    status, body = get(node, "/health")
    assert (status, json.loads(body)["status"]) == (200, "alive")
    assert get(node, "/ready") == (200, '{"status": "ready"}\n')
    assert get(node, "/anything")[0] == 404


def test_the_log_is_json_when_nobody_watches(node: Node, tmp_path: Path) -> None:
    lines = (node.folder / "node.log").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    assert events
    assert all({"time", "level", "event"} <= event.keys() for event in events)
