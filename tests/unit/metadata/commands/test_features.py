"""Levels of features, as far as the scenarios leave something out."""

import pytest

from riverlog.metadata.commands.features import FeatureUpdate, UpdateFeatures, UpgradeType
from riverlog.metadata.features import ELIGIBLE_LEADERS
from riverlog.model.errors import ErrorCode, Refusal
from tests.unit.metadata.active_cluster import ActiveCluster


def test_all_are_set_or_none() -> None:
    cluster = ActiveCluster(None)
    down = UpgradeType.SAFE_DOWNGRADE
    before = len(cluster.records)
    with pytest.raises(Refusal):
        cluster.do(UpdateFeatures((FeatureUpdate("transaction.version", 1, down), FeatureUpdate("x", 1))))
    assert len(cluster.records) == before
    cluster.do(UpdateFeatures((FeatureUpdate("transaction.version", 1, down), FeatureUpdate("group.version", 0, down))))
    assert cluster.machine.image.features["transaction.version"] == 1


def test_eligible_leaders_stay_as_long_as_one_is_waited_for() -> None:
    cluster = ActiveCluster(None, None)
    cluster.create("orders", 1, (1,))
    off = UpdateFeatures((FeatureUpdate(ELIGIBLE_LEADERS, 0, UpgradeType.SAFE_DOWNGRADE),))
    cluster.beat(1, want_fence=True)
    assert cluster.partition("orders").rare.eligible_leader_replicas == (1,)
    with pytest.raises(Refusal, match="wait for an eligible leader") as refused:
        cluster.do(off)
    assert refused.value.code is ErrorCode.INVALID_UPDATE_VERSION
    cluster.beat(1)
    cluster.do(off)
    assert cluster.machine.image.features[ELIGIBLE_LEADERS] == 0
