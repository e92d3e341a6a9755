"""Every setting of Kafka's brokers, topics and clients is known, by the names in Kafka's own archives."""

import subprocess
from pathlib import Path
from typing import Final

import pytest

from riverlog.cli.client_settings import SECURITY
from riverlog.cli.kafka_clients import BOOTSTRAP, PARAMETERS, WITHOUT_MEANING
from riverlog.model.kafka_settings import (
    NODE_SETTINGS_WITHOUT_MEANING,
    TOPIC_SETTINGS_WITHOUT_MEANING,
    UNSUPPORTED_NODE_SETTINGS,
)
from riverlog.model.settings import NODE_SETTINGS, TOPIC_SETTINGS
from tests.conformance.foreign.build import JAVA, class_path

SOURCE: Final = Path(__file__).with_name("java") / "SettingNames.java"
SECONDS_MAX: Final = 60
ONLY_FOR_KAFKAS_TESTS: Final = {"internal.segment.bytes"}


@pytest.fixture(scope="module")
def names() -> dict[str, set[str]]:
    command = [*JAVA, "-cp", class_path(), str(SOURCE)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=True)
    names: dict[str, set[str]] = {"broker": set(), "client": set(), "topic": set()}
    for line in done.stdout.splitlines():
        kind, _, name = line.partition(" ")
        names[kind].add(name)
    return names


def test_every_setting_of_a_broker_is_known(names: dict[str, set[str]]) -> None:
    assert len(names["broker"]) >= 360
    known = NODE_SETTINGS.keys() | NODE_SETTINGS_WITHOUT_MEANING | UNSUPPORTED_NODE_SETTINGS.keys()
    assert names["broker"] - known == set()


def test_every_setting_of_a_client_is_known(names: dict[str, set[str]]) -> None:
    assert len(names["client"]) >= 140
    known = PARAMETERS.keys() | WITHOUT_MEANING | {*BOOTSTRAP}
    assert {name for name in names["client"] - known if not name.startswith(SECURITY)} == set()


def test_every_setting_of_a_topic_is_known(names: dict[str, set[str]]) -> None:
    assert names["topic"] - TOPIC_SETTINGS.keys() - TOPIC_SETTINGS_WITHOUT_MEANING == ONLY_FOR_KAFKAS_TESTS
