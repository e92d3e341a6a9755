"""Rules that are noticed soon when they are switched off; `make sim` tries all of them."""

import pytest

from tests.simulation.switches import SWITCHES, Switch, noticed

SOON = {
    "metadata is synced",
    "closed segments are synced too",
    "names in a partition's folder are synced",
    "the identity is durable",
    "acknowledged after the flush",
    "a failed flush is noticed",
    "a deleted partition's offsets are forgotten",
    "the marker of a clean stop goes first",
}


def test_every_switch_has_a_name_of_its_own() -> None:
    assert len({switch.name for switch in SWITCHES}) == len(SWITCHES)
    assert {switch.name for switch in SWITCHES} >= SOON


@pytest.mark.parametrize("switch", SWITCHES, ids=lambda switch: switch.name)
def test_every_rule_is_where_its_switch_looks_for_it(switch: Switch) -> None:
    with switch.off():
        pass


@pytest.mark.parametrize(
    "switch", [switch for switch in SWITCHES if switch.name in SOON], ids=lambda switch: switch.name
)
def test_a_rule_that_is_switched_off_is_missed(switch: Switch) -> None:
    assert noticed(switch) is not None
