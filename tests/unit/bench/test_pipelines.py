"""Lines of pipelines: one for each job, and the rows of which one in a hundred is late."""

import json
from datetime import datetime, timedelta

from bench import clients
from bench.pipeline_jobs import JOBS, moment
from bench.pipelines import ABOUT, LATE_EVERY, LINES, _reading, named_topic
from bench.spark import PARTITIONS
from tests.support.trials import short_trial


def test_every_example_has_a_line() -> None:
    assert set(ABOUT) == set(JOBS)
    assert {f"pipelines-{name}" for name in JOBS} < {line.name for line in LINES}


def test_one_reading_of_a_hundred_is_five_minutes_late() -> None:
    behind = [
        datetime.fromisoformat(moment(number)) - datetime.fromisoformat(json.loads(_reading(number))["at"])
        for number in range(10 * LATE_EVERY)
    ]
    assert sorted(set(behind)) == [timedelta(0), timedelta(minutes=5)]
    assert sum(map(bool, behind)) == 10


def test_a_topic_has_the_name_of_the_example_and_its_rows_in_turn() -> None:
    with short_trial() as trial, named_topic(trial, "clicks") as topic:
        assert topic == "clicks"
        clients.fill(trial.node, topic, map(str, range(10)), partitions=PARTITIONS)
        assert clients.end_offset(trial.node, topic, PARTITIONS) == 10
