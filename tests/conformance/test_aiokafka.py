"""aiokafka against the broker."""

from tests.conformance.adapters.aio import Aiokafka
from tests.conformance.behaviours import Administers


class TestAiokafka(Administers):
    adapter = Aiokafka
