"""What a group may set for itself, over what its node gives to all."""

from dataclasses import replace

import pytest

from riverlog.model.group_config import GROUP_SETTINGS, GroupConfig, check_group_times, group_config
from riverlog.model.setting import BadSetting
from riverlog.model.settings import NODE_ONLY_SETTINGS, NodeSettings


def test_a_group_that_says_nothing_has_what_the_node_gives() -> None:
    settings = replace(NodeSettings(), group_consumer_session_timeout_ms=30_000)
    assert group_config({}, settings) == replace(GroupConfig(), consumer_session_timeout_ms=30_000)


def test_what_a_group_says_wins() -> None:
    settings = replace(NodeSettings(), group_consumer_session_timeout_ms=30_000)
    config = group_config({"consumer.session.timeout.ms": "50000"}, settings)
    assert config == replace(GroupConfig(), consumer_session_timeout_ms=50_000)


def test_each_is_the_node_s_setting_for_one_group() -> None:
    for name, setting in GROUP_SETTINGS.items():
        for_all = NODE_ONLY_SETTINGS[f"group.{name}"]
        assert (setting.kind, setting.default, setting.range) == (for_all.kind, for_all.default, for_all.range)


@pytest.mark.parametrize("session_ms", [1, 5_000])
def test_a_session_is_longer_than_the_time_between_heartbeats(session_ms: int) -> None:
    with pytest.raises(BadSetting, match="must be greater than"):
        check_group_times(GroupConfig(consumer_session_timeout_ms=session_ms))
    check_group_times(GroupConfig(consumer_session_timeout_ms=5_001))
