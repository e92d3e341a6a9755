"""Apache Kafka's Java client against the broker."""

from tests.conformance.adapters.foreign import JavaClient
from tests.conformance.behaviours import Administers


class TestJavaClient(Administers):
    adapter = JavaClient
