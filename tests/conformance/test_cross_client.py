"""What one client writes, every other one reads."""

from collections.abc import Callable
from itertools import product

import pytest

from tests.conformance.adapters import CODECS
from tests.conformance.adapters.registry import CLIENTS
from tests.conformance.pairs import Pairs, parameters


class TestPairs(Pairs):
    @pytest.mark.parametrize("codec", CODECS)
    @pytest.mark.parametrize(("writer", "reader"), parameters(product(CLIENTS, CLIENTS)))
    def test_one_client_reads_what_another_wrote(
        self, writer: str, reader: str, codec: str, check_pair: Callable[[str, str, str], None]
    ) -> None:
        check_pair(writer, reader, codec)
