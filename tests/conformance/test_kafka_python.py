"""kafka-python against the broker."""

from tests.conformance.adapters.kafka_python import KafkaPython
from tests.conformance.behaviours import Administers


class TestKafkaPython(Administers):
    adapter = KafkaPython
