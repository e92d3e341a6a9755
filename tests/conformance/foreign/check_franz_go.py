"""franz-go against the broker."""

from tests.conformance.adapters.foreign import FranzGo
from tests.conformance.behaviours import Administers


class TestFranzGo(Administers):
    adapter = FranzGo
