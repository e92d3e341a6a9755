"""How a setting of nodes is declared."""

from dataclasses import dataclass

from riverlog.model.node_row import node_row
from riverlog.model.row import rows_of
from riverlog.model.setting import SettingType


@dataclass(frozen=True)
class Settings:
    wants_it: bool = node_row("wants.it", SettingType.BOOLEAN, True, "Whether it is wanted.", or_else=("old.name",))


def test_a_row_has_its_default_and_the_names_that_stand_for_it() -> None:
    assert Settings().wants_it is True
    row = rows_of(Settings)["wants.it"]
    assert (row.default, [name.name for name in row.node_names]) == ("true", ["wants.it", "old.name"])
