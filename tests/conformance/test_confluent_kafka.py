"""confluent-kafka against the broker."""

from tests.conformance.adapters.confluent import ConfluentKafka
from tests.conformance.behaviours import Administers


class TestConfluentKafka(Administers):
    adapter = ConfluentKafka
