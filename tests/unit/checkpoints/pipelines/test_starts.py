"""Where a query begins that was reset: written and read, and nothing else is taken for it."""

from typing import Any

import pytest

from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.pipelines.starts import Start, read_start, start_of


@pytest.mark.parametrize("start", [Start("earliest"), Start("latest"), Start(timestamp_ms=0), Start(timestamp_ms=5)])
def test_what_is_written_is_read(start: Start) -> None:
    assert read_start(start.content()) == start
    assert start_of(start.to_json()) == start


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"edge": "middle"},
        {"edge": "latest", "timestamp_ms": 1},
        {"timestamp_ms": True},
        {"timestamp_ms": -1},
        7,
        [],
    ],
)
def test_nothing_else_is_a_start(told: Any) -> None:
    with pytest.raises(RequestRefused, match="earliest or latest"):
        start_of(told)


def test_a_file_of_others_is_told() -> None:
    with pytest.raises(RequestRefused, match="reset the pipeline again"):
        read_start(b"v1\n")
