"""The table of APIs agrees with its messages and its documentation, and is cheap to import."""

import subprocess
import sys
from pathlib import Path

import pytest

from riverlog.wire.apis import API_BY_KEY, APIS, Api, ApiKey, Versions
from riverlog.wire.types import key_of
from tests.support.documents import api_table

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "protocol.md"


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_request_and_response_are_found_by_name(api: Api) -> None:
    assert api.request.__name__ == api.name + "Request"
    assert api.response.__name__ == api.name + "Response"
    assert key_of(api.request) is key_of(api.response) is api.key


def test_the_table_is_sorted_and_names_each_api_once() -> None:
    keys = [api.key for api in APIS]
    assert keys == sorted(set(keys))
    assert list(API_BY_KEY) == keys


def test_names_are_those_of_kafkas_documentation() -> None:
    assert ApiKey.OFFSET_FOR_LEADER_EPOCH.title == "OffsetForLeaderEpoch"
    assert ApiKey.SASL_HANDSHAKE.title == "SaslHandshake"


def test_produce_is_advertised_from_version_0_though_0_to_2_are_refused() -> None:
    produce = API_BY_KEY[ApiKey.PRODUCE]
    assert produce.advertised == Versions(0, 13)
    assert 2 not in produce.versions
    assert 3 in produce.versions


def test_all_others_are_advertised_as_they_are_spoken() -> None:
    assert [api.name for api in APIS if api.advertised != api.versions] == ["Produce"]


def test_versions() -> None:
    assert list(Versions(2, 4)) == [2, 3, 4]
    assert (1 in Versions(2, 4), 4 in Versions(2, 4), 5 in Versions(2, 4)) == (False, True, False)
    assert (str(Versions(2, 4)), str(Versions(0, 0))) == ("2–4", "0")


def test_importing_the_table_imports_no_message() -> None:
    program = (
        "import sys, riverlog.wire.apis as apis\n"
        "assert not [name for name in sys.modules if name.startswith('riverlog.wire.messages')]\n"
        "apis.API_BY_KEY[3].request\n"
        "print(*[name for name in sys.modules if name.startswith('riverlog.wire.messages.')])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["riverlog.wire.messages.metadata"]


def test_the_documented_table_is_current() -> None:
    assert api_table() in DOCUMENT.read_text()
