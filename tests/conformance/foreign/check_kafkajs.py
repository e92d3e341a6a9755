"""KafkaJS against the broker."""

from tests.conformance.adapters.foreign import KafkaJs
from tests.conformance.behaviours import Administers, JoinsGroups
from tests.conformance.transacting import WritesTransactions


class TestKafkaJs(Administers, JoinsGroups, WritesTransactions):
    adapter = KafkaJs
