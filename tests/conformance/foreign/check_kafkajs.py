"""KafkaJS against the broker."""

from tests.conformance.adapters.foreign import KafkaJs
from tests.conformance.behaviours import Administers, JoinsGroups


class TestKafkaJs(Administers, JoinsGroups):
    adapter = KafkaJs
