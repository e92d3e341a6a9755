"""Rows for the examples are JSON that the examples understand, and there is a job for each of them."""

import json
from pathlib import Path

import pytest

from bench.pipeline_jobs import JOBS, payment

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize("name", JOBS)
def test_an_example_reads_and_writes_the_topics_of_its_job(name: str) -> None:
    job = JOBS[name]
    text = (EXAMPLES / job.file).read_text()
    for topic in (*job.inputs, *job.outputs):
        assert f'"{topic}"' in text or f":{topic}" in text


@pytest.mark.parametrize("name", JOBS)
def test_rows_are_json_with_the_columns_of_the_example(name: str) -> None:
    job = JOBS[name]
    text = (EXAMPLES / job.file).read_text()
    for value in job.inputs.values():
        for number in (0, 1, 2, 99, 12_345):
            for column in json.loads(value(number)):
                assert column in text


def test_four_of_five_orders_are_paid_once() -> None:
    paid = [json.loads(payment(number))["order"] for number in range(400)]
    assert len(set(paid)) == 400
    assert set(paid) == {order for order in range(500) if order % 5 != 4}
