"""Listens to the queries of a Spark session at little cost: PySpark asks Java for each number of a batch by itself.

Those are some two hundred questions per batch, in a thread of Java and one of Python, which cost more CPU than a small
batch does. Spark can write its account of a batch as JSON, so one question is enough.
"""

import json
from typing import Any

from pyspark.sql.streaming.listener import JStreamingQueryListener, QueryProgressEvent, StreamingQueryListener


class QueryListener(StreamingQueryListener):
    """A listener that takes Spark's account of a batch in one piece; with Spark Connect all of them do."""

    @property
    def _jlistener(self) -> Any:
        from pyspark import SparkContext

        if not hasattr(self, "_jlistenerobj"):
            java: Any = SparkContext._jvm
            self._jlistenerobj = java.PythonStreamingQueryListenerWrapper(_InOnePiece(self))
        return self._jlistenerobj


class _InOnePiece(JStreamingQueryListener):
    """What Java calls."""

    def onQueryProgress(self, jevent: Any) -> None:  # noqa: N802 - Spark's name
        self.pylistener.onQueryProgress(QueryProgressEvent.fromJson(json.loads(jevent.json())))

    class Java(JStreamingQueryListener.Java):
        """The interface, by which Py4J knows what this is."""
