"""The table of settings: complete, and readable."""

from dataclasses import fields

from riverlog.model.setting import SettingType
from riverlog.model.settings import (
    NODE_ONLY_SETTINGS,
    NODE_SETTINGS,
    PROFILES,
    TOPIC_SETTINGS,
    NodeSettings,
    TopicConfig,
)


def test_every_setting_explains_itself_and_its_default_is_one_of_its_values():
    for setting, name in NODE_SETTINGS.values():
        assert setting.doc.endswith(".")
        assert len(setting.doc.split()) >= 4
        setting.read(setting.default)
        assert name.factor == 1 or setting.kind is SettingType.LONG


def test_names_in_profiles_exist():
    for profile in PROFILES.values():
        assert set(profile) <= set(NODE_SETTINGS)


def test_fields_are_named_after_their_settings():
    for config in (NodeSettings, TopicConfig):
        for each in fields(config):
            setting = each.metadata.get("setting")
            special = ("cleanup_delete", "cleanup_compact", "message_timestamp_log_append_time", "layers")
            special += ("record_validation_full",)
            assert each.name in special or each.name == setting.name.replace(".", "_")


def test_numbers_are_what_their_fields_say():
    for each in fields(TopicConfig):
        kind = each.metadata["setting"].kind
        assert (each.type in (int, "int")) == (kind in (SettingType.INT, SettingType.LONG)), each.name


def test_a_node_and_its_topics_share_no_name_by_accident():
    shared = {
        "compression.type",
        "durability",
        "min.insync.replicas",
        "record.validation",
        "unclean.leader.election.enable",
    }
    assert set(NODE_ONLY_SETTINGS) & set(TOPIC_SETTINGS) == set()
    assert set(NODE_SETTINGS) & set(TOPIC_SETTINGS) == shared
