"""Orders for Spark: JSON of a given size, in topics of four partitions; and who is measured by which way."""

import json
import os
from dataclasses import replace
from functools import partial
from typing import cast

import pytest

from bench import clients
from bench.spark import (
    CONNECTOR,
    CUSTOMERS,
    MARKERS_MAX,
    PARTITIONS,
    RIVERLOG,
    TUNED,
    WARM_UPS,
    Meter,
    expect_rows,
    expect_written,
    in_turn,
    order,
    orders,
    warm,
    ways_at,
)
from bench.trial import Contender, Failed
from tests.support.trials import Ours, short_trial


@pytest.mark.parametrize("size", [100, 1_000])
@pytest.mark.parametrize("number", [0, 7, 999, 7_499])
def test_an_order_is_json_of_exactly_its_size(size: int, number: int) -> None:
    text = order(number, size)
    assert len(text) == size
    read = json.loads(text)
    assert (read["order"], read["customer"]) == (number, f"c{number % CUSTOMERS:04}")


def test_a_topic_of_orders_holds_what_it_says() -> None:
    with short_trial() as trial, orders(trial, rows=50_000, value_bytes=100) as (topic, count):
        assert clients.end_offset(trial.node, topic, PARTITIONS) == count
        assert 40_000 < count < 70_000


def test_at_another_broker_only_its_own_ways_are_measured() -> None:
    with short_trial() as trial:
        assert ways_at(trial, RIVERLOG, CONNECTOR, TUNED) == [RIVERLOG, CONNECTOR, TUNED]
        other = Ours()
        other.name = "Kafka"
        assert ways_at(replace(trial, contender=cast(Contender, other)), RIVERLOG, CONNECTOR) == [CONNECTOR]


def test_what_is_new_to_a_spark_is_done_twice() -> None:
    done: list[int] = []
    with short_trial() as trial:
        for _ in range(2):
            warm(trial, "it", lambda: done.append(1))
    assert len(done) == 3


def test_those_that_are_compared_are_all_warm_before_the_first_is_measured() -> None:
    done: list[str] = []
    with short_trial() as trial:
        for _ in range(2):
            in_turn(trial, "it", {name: partial(done.append, name) for name in "ab"})
    assert "".join(done) == "ab" * WARM_UPS + "ab" + "ab"


def test_the_meter_counts_this_process() -> None:
    with Meter() as meter:
        before = os.times().user
        while os.times().user < before + 0.05:
            pass
    assert meter.seconds > 0
    assert meter.cpu_seconds > 0


def test_rows_that_are_missing_fail_the_run() -> None:
    expect_rows(3, 3)
    with pytest.raises(Failed, match="the topic has 3 records, but Spark has seen 2"):
        expect_rows(2, 3)
    with short_trial() as trial, orders(trial, rows=1, value_bytes=100) as (topic, count):
        expect_written(trial, topic, count)
        with pytest.raises(Failed, match=f"{count + 1} rows were written, but the topic ends at {count}"):
            expect_written(trial, topic, count + 1)
        with pytest.raises(Failed, match="were written, but the topic ends at"):
            expect_written(trial, topic, count - MARKERS_MAX - 1)
