"""Every bound is a number, and says what happens beyond it."""

import re
from pathlib import Path

from riverlog.model import limits


def test_every_limit_is_positive_and_explained():
    text = Path(limits.__file__).read_text()
    names = [name for name in vars(limits) if name.isupper()]
    assert names
    for name in names:
        assert getattr(limits, name) > 0
        assert re.search(rf'^{name}: Final = .*\n"""', text, re.MULTILINE), name
