"""What is heard of Spark's batches, and at which price."""

import json
from typing import Any

from pyspark.sql.streaming.listener import QueryProgressEvent

from riverlog.spark.sessions.query_listener import QueryListener, _InOnePiece
from tests.unit.spark.sessions.test_progress import ACCOUNT


class Heard(QueryListener):
    def __init__(self) -> None:
        self.events: list[QueryProgressEvent] = []

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        self.events.append(event)

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - Spark's name
        pass


class Account:
    """An event in Java, which answers one question; any other is an AttributeError."""

    asked = 0

    def json(self) -> str:
        self.asked += 1
        return json.dumps({"progress": ACCOUNT})


def test_a_batch_is_asked_for_once() -> None:
    heard, event = Heard(), Account()
    _InOnePiece(heard).onQueryProgress(event)
    (told,) = heard.events
    assert (told.progress.batchId, told.progress.sink.numOutputRows, event.asked) == (7, 40, 1)
    assert _InOnePiece.Java.implements == ["org.apache.spark.sql.streaming.PythonStreamingQueryListener"]
