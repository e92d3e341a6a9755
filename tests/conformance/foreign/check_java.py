"""Apache Kafka's Java client against the broker."""

from tests.conformance.adapters.foreign import JavaClient
from tests.conformance.behaviours import Administers, JoinsConsumerGroups
from tests.conformance.transacting import WritesTransactions


class TestJavaClient(Administers, JoinsConsumerGroups, WritesTransactions):
    adapter = JavaClient
