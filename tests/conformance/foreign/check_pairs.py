"""What a client in one language writes, those in the others read."""

from collections.abc import Callable
from itertools import product

import pytest

from tests.conformance.adapters import CODECS
from tests.conformance.adapters.registry import CLIENTS, FOREIGN_CLIENTS
from tests.conformance.pairs import Pairs, parameters

EVERY_CLIENT = CLIENTS | FOREIGN_CLIENTS
PAIRS = [pair for pair in product(EVERY_CLIENT, EVERY_CLIENT) if not set(pair) <= CLIENTS.keys()]


class TestPairs(Pairs):
    @pytest.mark.parametrize("codec", CODECS)
    @pytest.mark.parametrize(("writer", "reader"), parameters(PAIRS))
    def test_one_client_reads_what_another_wrote(
        self, writer: str, reader: str, codec: str, check_pair: Callable[[str, str, str], None]
    ) -> None:
        check_pair(writer, reader, codec)
