"""A query that was reset begins where it was said, whatever its options say."""

import pytest

from riverlog.checkpoints.pipelines.starts import Start
from riverlog.pipelines.runtime.starting_offsets import beginning_at, start_of_query

OPTIONS = {"subscribe": "orders", "startingOffsets": "earliest", "startingTimestamp": "7"}


@pytest.mark.parametrize(
    ("start", "begins"),
    [
        (None, {"startingOffsets": "earliest", "startingTimestamp": "7"}),
        (Start("earliest"), {"startingOffsets": "earliest"}),
        (Start("latest"), {"startingOffsets": "latest"}),
        (Start(timestamp_ms=5), {"startingTimestamp": "5", "startingOffsetsByTimestampStrategy": "latest"}),
    ],
)
def test_the_place_wins_over_the_program(start: Start | None, begins: dict[str, str]) -> None:
    assert beginning_at(OPTIONS, start) == {"subscribe": "orders", **begins}


@pytest.mark.parametrize("checkpoint", ["no-checkpoint", "/tmp/folder", "file:///tmp/folder", "s3a://bucket/folder"])
def test_only_nodes_are_asked(checkpoint: str) -> None:
    assert start_of_query(checkpoint) is None


def test_a_node_that_is_away_is_no_answer() -> None:
    with pytest.raises(OSError, match="refused"):
        start_of_query("webhdfs://127.0.0.1:1/pipelines/orders")
