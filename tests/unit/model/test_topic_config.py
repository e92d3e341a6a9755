"""The settings of topics and how nodes set them for all."""

from riverlog.model.topic_config import DEFAULT_TOPIC_CONFIG, TOPIC_SETTINGS, Durability


def test_defaults_are_kafkas_but_for_durability_and_replicas() -> None:
    config = DEFAULT_TOPIC_CONFIG
    assert (config.cleanup_delete, config.cleanup_compact) == (True, False)
    assert (config.retention_ms, config.segment_bytes, config.max_message_bytes) == (604_800_000, 2**30, 1_048_588)
    assert (config.durability, config.min_insync_replicas) == (Durability.FSYNC, 2)


def test_every_setting_of_topics_can_change_while_they_live_and_be_set_for_a_node() -> None:
    for setting in TOPIC_SETTINGS.values():
        assert setting.dynamic
        assert setting.node_names


def test_a_node_may_give_times_in_larger_units() -> None:
    units = {each.name: each for each in TOPIC_SETTINGS["retention.ms"].node_names}
    assert list(units) == ["log.retention.ms", "log.retention.minutes", "log.retention.hours"]
