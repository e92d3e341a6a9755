"""What is gone fails a query, or is told."""

import logging

import pytest

from riverlog.spark.source.losses import DataLoss, lost
from riverlog.spark.source.options import stream_options


def test_a_loss_fails_or_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(DataLoss, match=r"^ten are gone. Set failOnDataLoss=false to go on without them"):
        lost(stream_options({"subscribe": "a"}), "ten are gone")
    with caplog.at_level(logging.WARNING):
        lost(stream_options({"subscribe": "a", "failOnDataLoss": "false"}), "ten are gone")
    assert caplog.messages == ["ten are gone. The query goes on, as failOnDataLoss=false says"]
