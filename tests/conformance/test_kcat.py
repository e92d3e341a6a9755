"""kcat against the broker, where kcat is installed."""

import pytest

from tests.conformance.adapters.kcat import Kcat
from tests.conformance.adapters.registry import why_missing
from tests.conformance.behaviours import ReadsAndWrites

pytestmark = pytest.mark.skipif(why_missing("kcat") is not None, reason="kcat is not installed")


class TestKcat(ReadsAndWrites):
    adapter = Kcat
