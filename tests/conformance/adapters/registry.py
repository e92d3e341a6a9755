"""The clients that are tested, by name. A client is imported when it is first asked for, so that one which is not
installed is missed alone."""

from importlib import import_module
from typing import Final

from tests.conformance.adapters import Client

CLIENTS: Final = {
    "confluent-kafka": "confluent.ConfluentKafka",
    "kafka-python": "kafka_python.KafkaPython",
    "aiokafka": "aio.Aiokafka",
    "kcat": "kcat.Kcat",
}
FOREIGN_CLIENTS: Final = {
    "KafkaJS": "foreign.KafkaJs",
    "Java client": "foreign.JavaClient",
    "franz-go": "foreign.FranzGo",
}
"""Those in other languages: `make conformance` builds and runs them, `make test` does without."""


def load(name: str) -> type[Client]:
    """Return a client's adapter; raise ImportError or OSError where the client is not installed."""
    module, _, adapter = (CLIENTS | FOREIGN_CLIENTS)[name].rpartition(".")
    found: type[Client] = getattr(import_module(f"tests.conformance.adapters.{module}"), adapter)
    found.version()
    return found


def why_missing(name: str) -> str | None:
    """Return why a client cannot be used, or None if it can."""
    try:
        load(name)
    except (ImportError, OSError) as error:
        return f"{name} is not installed: {error}"
    return None
