"""Every anomaly has a name and a sentence."""

from inspect import isabstract

import pytest

from riverlog.verify import anomalies
from riverlog.verify.anomalies import KINDS, Anomaly, CommitWentBack, Cycle, InconsistentOffset, Lost


def test_all_are_listed() -> None:
    classes = {each for each in vars(anomalies).values() if isinstance(each, type) and issubclass(each, Anomaly)}
    assert {*KINDS} == classes - {Anomaly}
    assert len({kind.name() for kind in KINDS}) == len(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_each_says_what_it_is(kind: type[Anomaly]) -> None:
    assert not isabstract(kind)
    assert kind.__doc__ is not None
    assert kind.__doc__.endswith(".")


def test_names_are_words() -> None:
    assert [kind.name() for kind in (Lost, InconsistentOffset, CommitWentBack)] == [
        "lost",
        "inconsistent offset",
        "commit went back",
    ]


def test_a_cycle_is_told_around() -> None:
    assert Cycle(("a", "b")).sentence == "each came before the next, and so before itself: a → b → a"
