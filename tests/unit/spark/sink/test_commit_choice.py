"""How a sink commits, and the name under which it does."""

import json
from pathlib import Path
from typing import Any

import pytest

from riverlog.spark.refusal import SinkRefused
from riverlog.spark.sink.commit_choice import choose_strategy, name_of
from riverlog.spark.sink.commit_strategies import AtLeastOnce
from riverlog.spark.sink.options import SinkOptions, read_options
from riverlog.spark.sink.session_checkpoint import SessionCheckpoint

QUERY = "4a3c86a6-8f5b-4b2e-9f0e-0c8f3c1d2e4f"


def options(**given: Any) -> SinkOptions:
    return read_options({name.replace("_", "."): str(value) for name, value in given.items()}, is_stream=True)


def test_at_least_once_needs_nobody() -> None:
    assert choose_strategy(options(delivery="at-least-once"), is_stream=True) == AtLeastOnce()


def test_a_checkpoint_in_a_folder_has_the_querys_id(tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text(json.dumps({"id": QUERY}))
    assert name_of(options(checkpointLocation=tmp_path)) == f"spark:{QUERY}"
    assert name_of(options(checkpointLocation=tmp_path.as_uri())) == f"spark:{QUERY}"
    beside = f"{tmp_path.as_uri()}#2"
    assert name_of(options(checkpointLocation=beside)) == f"spark:{beside}"


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"id": 7}', '{"id": "x"}'])
def test_a_folder_that_does_not_tell_is_the_name_itself(tmp_path: Path, content: str) -> None:
    (tmp_path / "metadata").write_text(content)
    assert name_of(options(checkpointLocation=tmp_path)) == f"spark:{tmp_path}"


def test_elsewhere_the_location_is_the_name() -> None:
    assert name_of(options(checkpointLocation="s3a://bucket/orders")) == "spark:s3a://bucket/orders"
    assert name_of(options(queryName="orders", kafka_transactional_id="mine")) == "mine"


def test_a_query_with_a_name_and_no_checkpoint_has_that_of_its_session() -> None:
    assert choose_strategy(options(queryName="orders"), is_stream=True) == SessionCheckpoint("orders")


def test_without_any_name_the_user_is_asked_for_one() -> None:
    with pytest.raises(SinkRefused, match="delivery=at-least-once"):
        name_of(options())
