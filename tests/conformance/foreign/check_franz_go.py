"""franz-go against the broker."""

from tests.conformance.adapters.foreign import FranzGo
from tests.conformance.behaviours import Administers, JoinsGroups
from tests.conformance.transacting import WritesTransactions


class TestFranzGo(Administers, JoinsGroups, WritesTransactions):
    adapter = FranzGo
