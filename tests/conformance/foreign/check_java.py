"""Apache Kafka's Java client against the broker."""

from tests.conformance.adapters.foreign import JavaClient
from tests.conformance.behaviours import Administers, JoinsConsumerGroups


class TestJavaClient(Administers, JoinsConsumerGroups):
    adapter = JavaClient
