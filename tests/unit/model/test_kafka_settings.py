"""The names that Kafka knows and that mean nothing here."""

import pytest

from riverlog.model.kafka_settings import (
    NODE_SETTINGS_WITHOUT_MEANING,
    TOPIC_SETTINGS_WITHOUT_MEANING,
    UNSUPPORTED_NODE_SETTINGS,
)
from riverlog.model.settings import NODE_SETTINGS, TOPIC_SETTINGS


def test_no_name_is_both_used_and_without_meaning():
    assert not NODE_SETTINGS_WITHOUT_MEANING & set(NODE_SETTINGS)
    assert not TOPIC_SETTINGS_WITHOUT_MEANING & set(TOPIC_SETTINGS)


def test_a_name_belongs_to_one_class():
    assert not UNSUPPORTED_NODE_SETTINGS.keys() & NODE_SETTINGS.keys()
    assert not UNSUPPORTED_NODE_SETTINGS.keys() & NODE_SETTINGS_WITHOUT_MEANING


@pytest.mark.parametrize("name", UNSUPPORTED_NODE_SETTINGS)
def test_no_value_asks_for_nothing(name: str):
    assert not UNSUPPORTED_NODE_SETTINGS[name].asks("")


def test_nothing_that_promises_protection_is_passed_over():
    for name in NODE_SETTINGS_WITHOUT_MEANING:
        assert not name.startswith(("authorizer.", "principal.", "ssl.keystore.location", "ssl.client.auth"))
