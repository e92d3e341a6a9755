"""Who votes first, as it is typed."""

import pytest

from riverlog.cli.first_controllers import first_levels, first_voters
from riverlog.cli.terminal.exits import CommandError
from riverlog.metadata.features import FIRST_LEVELS
from riverlog.model.uuids import decode_uuid

A, B = "3Db5QLSqSZieL3rJBUUegA", "L3zxNDcHSwaJ6VHqzyYdXw"


def test_voters_are_read_with_address_and_directory() -> None:
    first, second = first_voters(f"2@[::1]:9093:{B},1@c1:9093:{A}", listener="CONTROLLER")
    assert (first.key.id, first.key.directory_id) == (1, decode_uuid(A))
    assert [str(each) for each in first.endpoints] == ["CONTROLLER://c1:9093"]
    assert (second.key.id, second.endpoints[0].address) == (2, ("::1", 9093))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("1@c1:9093", "has '1@c1:9093'; write ID@HOST:PORT:DIRECTORY-ID"),
        (f"c1:9093:{A}", "write ID@HOST:PORT:DIRECTORY-ID"),
        (f"1@c1:0:{A}", "write ID@HOST:PORT:DIRECTORY-ID"),
        (f"1@c1:9093:{A}==", "is no directory id; `riverlog storage random-uuid` makes one"),
        ("1@c1:9093:AAAAAAAAAAAAAAAAAAAAAg", "is no directory id"),
        (f"1@c1:9093:{A},1@c2:9093:{B}", "names a node twice"),
        (f"1@c1:9093:{A},2@c2:9093:{A}", "names a directory id twice"),
        ("", "write ID@HOST:PORT:DIRECTORY-ID"),
    ],
)
def test_a_mistake_in_the_list_is_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence.replace("?", r"\?")):
        first_voters(text, listener="CONTROLLER")


def test_levels_are_those_of_a_new_cluster_but_for_what_is_given() -> None:
    assert first_levels([], dynamic=True) == FIRST_LEVELS
    assert first_levels(["group.version=0", "kraft.version=1"], dynamic=True) == {**FIRST_LEVELS, "group.version": 0}
    assert first_levels(["kraft.version=0"], dynamic=False) == FIRST_LEVELS


@pytest.mark.parametrize(
    ("feature", "dynamic", "sentence"),
    [
        ("winged=1", True, "there is no feature 'winged'"),
        ("share.version=1", True, "share.version cannot be at level 1; only 0 can be run here"),
        ("transaction.version=x", True, "transaction.version cannot be at level x; 0 to 2 can be run here"),
        ("kraft.version=0", True, "controller.quorum.voters is not set; leave it out"),
        ("kraft.version=1", False, "needs voters that are in the metadata, and controller.quorum.voters is set"),
    ],
)
def test_a_level_that_cannot_be_is_refused(feature: str, dynamic: bool, sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence):
        first_levels([feature], dynamic=dynamic)
