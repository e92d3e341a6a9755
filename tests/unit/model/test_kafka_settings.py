"""The names that Kafka knows and that mean nothing here."""

from riverlog.model.kafka_settings import NODE_SETTINGS_WITHOUT_MEANING, TOPIC_SETTINGS_WITHOUT_MEANING
from riverlog.model.settings import NODE_SETTINGS, TOPIC_SETTINGS


def test_no_name_is_both_used_and_without_meaning():
    assert not NODE_SETTINGS_WITHOUT_MEANING & set(NODE_SETTINGS)
    assert not TOPIC_SETTINGS_WITHOUT_MEANING & set(TOPIC_SETTINGS)


def test_nothing_that_promises_protection_is_passed_over():
    for name in NODE_SETTINGS_WITHOUT_MEANING:
        assert not name.startswith(("ssl.", "sasl.", "authorizer.", "super.users", "principal.", "security."))
