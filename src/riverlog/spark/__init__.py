"""Topics as sources and sinks of Spark, without a jar.

`pyspark_riverlog` is how Spark finds the format `riverlog` by itself. This room speaks to a cluster through the client
alone, so it works with any that speaks Kafka's protocol; what only a riverlog node offers says so where it is used.

    spark = riverlog.spark.session()
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from riverlog.spark.sessions.java import NoJava
    from riverlog.spark.sessions.progress import watch
    from riverlog.spark.sessions.session import AnotherSession, session, settings

__all__ = ["AnotherSession", "NoJava", "session", "settings", "watch"]

_HOMES = {
    "AnotherSession": "riverlog.spark.sessions.session",
    "NoJava": "riverlog.spark.sessions.java",
    "session": "riverlog.spark.sessions.session",
    "settings": "riverlog.spark.sessions.session",
    "watch": "riverlog.spark.sessions.progress",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'riverlog.spark' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
