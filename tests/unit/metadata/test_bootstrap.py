"""The first records of a cluster."""

from riverlog.metadata.bootstrap import bootstrap_records
from riverlog.metadata.draft import after
from riverlog.metadata.features import ELIGIBLE_LEADERS, FIRST_LEVELS, METADATA_VERSION
from riverlog.metadata.image import MetadataImage
from riverlog.metadata.records import ConfigRecord, FeatureLevelRecord
from riverlog.model.settings import SettingLayers


def test_metadata_version_comes_first_and_what_is_off_does_not_come() -> None:
    levels = {"a": 1, "share.version": 0, METADATA_VERSION: 30}
    records = bootstrap_records(MetadataImage(), levels, SettingLayers())
    assert records == [FeatureLevelRecord(METADATA_VERSION, 30), FeatureLevelRecord("a", 1)]


def test_eligible_leaders_bring_the_number_that_they_rest_on() -> None:
    assert FIRST_LEVELS[ELIGIBLE_LEADERS] == 1
    records = bootstrap_records(MetadataImage(), FIRST_LEVELS, SettingLayers(static={"min.insync.replicas": "3"}))
    assert records[-1] == ConfigRecord(4, "", "min.insync.replicas", "3")


def test_a_cluster_begins_once() -> None:
    image = after(MetadataImage(), bootstrap_records(MetadataImage(), FIRST_LEVELS, SettingLayers()))
    assert bootstrap_records(image, FIRST_LEVELS, SettingLayers()) == []
