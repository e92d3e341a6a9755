"""The text is what Prometheus' own parser reads it to be."""

from prometheus_client import Metric as Family
from prometheus_client.parser import text_string_to_metric_families

from riverlog.model.errors import ErrorCode
from riverlog.observe.exposition import render
from riverlog.observe.metrics import Metric, Sample, Scrape, scrape
from tests.unit.observe.source import ScrapedNode


async def parse(node: ScrapedNode) -> dict[str, Family]:
    text = render(await scrape(node, version="1.2.3")).decode()
    return {family.name: family for family in text_string_to_metric_families(text)}


async def test_every_metric_is_there_with_its_kind_and_meaning() -> None:
    node = ScrapedNode()
    node.stats.of_api("Produce").failed(ErrorCode.CORRUPT_MESSAGE)
    families = await parse(node)
    for metric in Metric:
        family = families.pop(metric.metric.removesuffix("_total"))
        assert (family.type, family.documentation) == (metric.kind, metric.meaning)
    assert families == {}


async def test_a_partition_has_its_own_series() -> None:
    node = ScrapedNode()
    node.partition_stats["orders", 1].bytes_in = 2**40 + 1
    samples = {
        (sample.labels["topic"], sample.labels["partition"]): sample.value
        for sample in (await parse(node))["riverlog_partition_bytes_in"].samples
    }
    assert samples == {("orders", "0"): 0, ("orders", "1"): 2**40 + 1}


async def test_a_group_has_its_lag_per_partition_and_in_sum() -> None:
    families = await parse(ScrapedNode())
    found = {
        (family.removeprefix("kafka_consumergroup_"), *sample.labels.values()): sample.value
        for family in families
        if family.startswith("kafka_consumergroup_")
        for sample in families[family].samples
    }
    assert found == {
        ("members", "billing"): 3,
        ("members", "idle"): 0,
        ("current_offset", "billing", "orders", "0"): 30,
        ("current_offset", "billing", "orders", "1"): 38,
        ("current_offset_sum", "billing", "orders"): 68,
        ("lag", "billing", "orders", "0"): 10,
        ("lag_sum", "billing", "orders"): 10,
    }
    states = {sample.labels["state"]: sample.value for sample in families["riverlog_groups"].samples}
    assert states == {"Empty": 1, "Stable": 1}


async def test_buckets_are_cumulated_up_to_infinity() -> None:
    node = ScrapedNode()
    for seconds in (0.00005, 0.3, 0.4, 60.0):
        node.stats.flushes.observe(seconds)
    samples = {
        (sample.name, sample.labels.get("le")): sample.value
        for sample in (await parse(node))["riverlog_flush_seconds"].samples
    }
    assert samples["riverlog_flush_seconds_bucket", "0.0001"] == 1
    assert samples["riverlog_flush_seconds_bucket", "0.25"] == 1
    assert samples["riverlog_flush_seconds_bucket", "0.5"] == 3
    assert samples["riverlog_flush_seconds_bucket", "10.0"] == 3
    assert samples["riverlog_flush_seconds_bucket", "+Inf"] == 4
    assert samples["riverlog_flush_seconds_count", None] == 4
    assert samples["riverlog_flush_seconds_sum", None] == 60.70005


async def test_a_histogram_with_labels_keeps_them() -> None:
    node = ScrapedNode()
    node.stats.of_api("Fetch").answered(0.0, 0.1, 0.2, 0.3, 0.4)
    samples = (await parse(node))["riverlog_request_stage_seconds"].samples
    assert {sample.labels["stage"] for sample in samples} == {"queue", "handle", "wait", "send"}
    assert {sample.labels["api"] for sample in samples} == {"Fetch"}


def test_no_label_can_break_out_of_its_quotes() -> None:
    hostile = 'a"} 1\nriverlog_info{version="b\\'
    text = render(Scrape([Sample(Metric.BROKER_INFO, ("1", hostile), 1)], [], [])).decode()
    (family,) = text_string_to_metric_families(text)
    (sample,) = family.samples
    assert sample.labels == {"id": "1", "address": hostile}
