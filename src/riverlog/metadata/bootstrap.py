"""The first records of a new cluster: the levels of its features, metadata.version first, and what these rest on."""

from collections.abc import Mapping

from riverlog.metadata.features import ELIGIBLE_LEADERS, METADATA_VERSION, MIN_IN_SYNC
from riverlog.metadata.image import ConfigResourceType, MetadataImage
from riverlog.metadata.records import ConfigRecord, FeatureLevelRecord, MetadataRecord
from riverlog.model.resolution import topic_config
from riverlog.model.settings import SettingLayers


def bootstrap_records(image: MetadataImage, levels: Mapping[str, int], layers: SettingLayers) -> list[MetadataRecord]:
    """Return the records with which a cluster begins; none where it has begun.

    Eligible leaders rest on `min.insync.replicas`, which every node must take for the same: so the cluster sets it.
    """
    if METADATA_VERSION in image.features:
        return []
    names = sorted(levels, key=lambda name: (name != METADATA_VERSION, name))
    records: list[MetadataRecord] = [
        FeatureLevelRecord(name=name, feature_level=levels[name]) for name in names if levels[name] > 0
    ]
    if levels.get(ELIGIBLE_LEADERS, 0) > 0:
        least = topic_config({}, layers).min_insync_replicas
        records.append(ConfigRecord(ConfigResourceType.BROKER, "", MIN_IN_SYNC, str(least)))
    return records
