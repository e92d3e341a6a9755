"""Changing settings. The conversations are in tests/scenarios/metadata; here are the edges."""

import pytest

from riverlog.metadata.commands.configs import AlterConfigs, ConfigChange, ResourceChanges, alter_configs, resource_of
from riverlog.metadata.draft import after
from riverlog.model.checkpoint_topic import CHECKPOINTS_TOPIC
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.settings import SettingLayers
from riverlog.wire.messages.incremental_alter_configs import ConfigOperation
from tests.unit.metadata.cluster import cluster, with_topic

TOPIC = 2
BROKER = 4


def altered(*changes: ConfigChange, type_: int = TOPIC, name: str = "orders", replace: bool = False):
    image = with_topic(cluster(None), "orders", retention_ms="5", cleanup_policy="delete")
    command = AlterConfigs((ResourceChanges(type_, name, changes),), replace=replace)
    records, reply = alter_configs(image, command, SettingLayers())
    return reply.outcomes[0].code, dict(after(image, records).topic_overrides("orders"))


def test_set_delete_append_and_subtract():
    code, values = altered(
        ConfigChange("segment.bytes", ConfigOperation.SET, "4096"),
        ConfigChange("retention.ms", ConfigOperation.DELETE),
        ConfigChange("cleanup.policy", ConfigOperation.APPEND, "compact, delete"),
    )
    assert code is ErrorCode.NONE
    assert values == {"segment.bytes": "4096", "cleanup.policy": "delete,compact"}
    assert altered(ConfigChange("cleanup.policy", ConfigOperation.SUBTRACT, "delete"))[1]["cleanup.policy"] == ""


def test_replacing_takes_away_what_is_not_named():
    code, values = altered(ConfigChange("flush.ms", ConfigOperation.SET, "9"), replace=True)
    assert (code, values) == (ErrorCode.NONE, {"flush.ms": "9"})


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (ConfigChange("retention.ms", ConfigOperation.SET), ErrorCode.INVALID_REQUEST),
        (ConfigChange("retention.ms", 7, "5"), ErrorCode.INVALID_REQUEST),
        (ConfigChange("retention.ms", ConfigOperation.APPEND, "5"), ErrorCode.INVALID_CONFIG),
        (ConfigChange("nonsense", ConfigOperation.APPEND, "5"), ErrorCode.INVALID_CONFIG),
        (ConfigChange("nonsense", ConfigOperation.SET, "5"), ErrorCode.INVALID_CONFIG),
        (ConfigChange("cleanup.policy", ConfigOperation.APPEND, "burn"), ErrorCode.INVALID_CONFIG),
    ],
)
def test_what_cannot_be_changes_nothing(change, code):
    also = ConfigChange("flush.ms", ConfigOperation.SET, "9")
    assert altered(also, change) == (code, {"retention.ms": "5", "cleanup.policy": "delete"})


def test_a_setting_is_named_once():
    change = ConfigChange("flush.ms", ConfigOperation.SET, "9")
    assert altered(change, change)[0] is ErrorCode.INVALID_REQUEST


def test_a_resource_is_named_once():
    image = with_topic(cluster(None), "orders")
    changes = ResourceChanges(TOPIC, "orders", (ConfigChange("flush.ms", ConfigOperation.SET, "9"),))
    records, reply = alter_configs(image, AlterConfigs((changes, changes)), SettingLayers())
    assert records == []
    assert [outcome.code for outcome in reply.outcomes] == [ErrorCode.INVALID_REQUEST] * 2


def test_a_rehearsal_writes_nothing():
    image = with_topic(cluster(None), "orders")
    changes = ResourceChanges(TOPIC, "orders", (ConfigChange("flush.ms", ConfigOperation.SET, "9"),))
    records, reply = alter_configs(image, AlterConfigs((changes,), validate_only=True), SettingLayers())
    assert (records, reply.outcomes[0].code) == ([], ErrorCode.NONE)


@pytest.mark.parametrize(
    ("type_", "name", "code"),
    [
        (TOPIC, "bills", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (BROKER, "7", ErrorCode.INVALID_REQUEST),
        (BROKER, "one", ErrorCode.INVALID_REQUEST),
        (BROKER, "-1", ErrorCode.INVALID_REQUEST),
        (8, "1", ErrorCode.INVALID_REQUEST),
        (0, "", ErrorCode.INVALID_REQUEST),
    ],
)
def test_resources_that_are_not_there(type_, name, code):
    with pytest.raises(Refusal) as refused:
        resource_of(cluster(None), type_, name)
    assert refused.value.code is code


def test_a_broker_has_one_name():
    assert resource_of(cluster(None), BROKER, "01").name == "1"
    assert resource_of(cluster(None), BROKER, "").name == ""


@pytest.mark.parametrize(
    ("replace", "change", "code"),
    [
        (False, ConfigChange("cleanup.policy", ConfigOperation.SET, "delete"), ErrorCode.INVALID_CONFIG),
        (False, ConfigChange("cleanup.policy", ConfigOperation.DELETE), ErrorCode.INVALID_CONFIG),
        (False, ConfigChange("cleanup.policy", ConfigOperation.APPEND, "delete"), ErrorCode.INVALID_CONFIG),
        (False, ConfigChange("max.message.bytes", ConfigOperation.SET, "1000"), ErrorCode.INVALID_CONFIG),
        (True, ConfigChange("segment.ms", ConfigOperation.SET, "60000"), ErrorCode.INVALID_CONFIG),
        (False, ConfigChange("segment.ms", ConfigOperation.SET, "60000"), ErrorCode.NONE),
    ],
)
def test_the_topic_of_checkpoints_stays_compacted(replace, change, code):
    image = with_topic(cluster(None), CHECKPOINTS_TOPIC, partitions=-1)
    command = AlterConfigs((ResourceChanges(TOPIC, CHECKPOINTS_TOPIC, (change,)),), replace=replace)
    _, reply = alter_configs(image, command, SettingLayers())
    assert reply.outcomes[0].code is code
