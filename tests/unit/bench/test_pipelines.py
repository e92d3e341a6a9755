"""Lines of pipelines: one for each job, and the rows of which one in a hundred is late."""

import json
from datetime import datetime, timedelta

from bench import clients
from bench.pipeline_jobs import JOBS
from bench.pipelines import ABOUT, LINES, named_topic, reading
from bench.spark import PARTITIONS
from tests.support.trials import short_trial


def test_every_example_has_a_line() -> None:
    assert set(ABOUT) == set(JOBS)
    assert {f"pipelines-{name}" for name in JOBS} < {line.name for line in LINES}


def test_one_reading_of_a_hundred_is_behind_the_watermark() -> None:
    at_once = 7_500
    rows = [datetime.fromisoformat(json.loads(reading(number, at_once))["at"]) for number in range(8 * at_once)]
    late = 0
    for batch in range(2, 8):
        watermark = max(rows[: (batch - 1) * at_once]) - timedelta(seconds=10)  # of the batch before
        ends = [at.replace(second=0, microsecond=0) + timedelta(minutes=1) for at in rows[batch * at_once :][:at_once]]
        late += sum(end <= watermark for end in ends)
    assert late == len(rows) // 100


def test_a_topic_has_the_name_of_the_example_and_its_rows_in_turn() -> None:
    with short_trial() as trial, named_topic(trial, "clicks") as topic:
        assert topic == "clicks"
        clients.fill(trial.node, topic, map(str, range(10)), partitions=PARTITIONS)
        assert clients.end_offset(trial.node, topic, PARTITIONS) == 10
