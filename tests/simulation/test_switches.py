"""Rules that are noticed soon when they are switched off; `make sim` tries all of them."""

import pytest

from tests.simulation.switches import SWITCHES, Switch, noticed

SOON = {
    "metadata is synced": 0,
    "closed segments are synced too": 0,
    "names in a partition's folder are synced": 0,
    "the identity is durable": 0,
    "acknowledged after the flush": 0,
    "a failed flush is noticed": 6,
    "what was recovered is synced before it counts": 14,
    "a deleted partition's offsets are forgotten": 0,
}
"""Switches with a seed that notices."""


def test_every_switch_has_a_name_of_its_own() -> None:
    assert len({switch.name for switch in SWITCHES}) == len(SWITCHES)
    assert {switch.name for switch in SWITCHES} >= set(SOON)


@pytest.mark.parametrize(
    "switch", [switch for switch in SWITCHES if switch.name in SOON], ids=lambda switch: switch.name
)
def test_a_rule_that_is_switched_off_is_missed(switch: Switch) -> None:
    assert noticed(switch, [SOON[switch.name]]) is not None
