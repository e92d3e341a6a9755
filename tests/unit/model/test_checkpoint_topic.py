"""What the topic of checkpoints must be."""

from riverlog.model.checkpoint_topic import CHECKPOINTS_CONFIGS, unfit_settings


def test_settings_that_lose_nothing_are_left_alone() -> None:
    assert unfit_settings(CHECKPOINTS_CONFIGS) == {}
    assert unfit_settings({"cleanup.policy": "compact", "max.message.bytes": "2000000", "segment.ms": "1"}) == {}


def test_settings_that_lose_checkpoints_are_named_with_what_they_must_be() -> None:
    compact = {"cleanup.policy": "compact"}
    assert unfit_settings({}) == compact
    assert unfit_settings({"cleanup.policy": "delete"}) == compact
    assert unfit_settings({"cleanup.policy": "compact,delete"}) == compact
    assert unfit_settings({**compact, "max.message.bytes": "1000"}) == {"max.message.bytes": "1048576"}
