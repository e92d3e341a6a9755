"""franz-go against the broker."""

from tests.conformance.adapters.foreign import FranzGo
from tests.conformance.behaviours import Administers, JoinsGroups


class TestFranzGo(Administers, JoinsGroups):
    adapter = FranzGo
