"""KafkaJS against the broker."""

from tests.conformance.adapters.foreign import KafkaJs
from tests.conformance.behaviours import Administers


class TestKafkaJs(Administers):
    adapter = KafkaJs
