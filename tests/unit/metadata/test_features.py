"""Features are listed when they are built."""

from riverlog.metadata.features import METADATA_VERSION, SUPPORTED_FEATURES
from riverlog.model.transactions import TransactionVersion
from tests.unit.metadata.cluster import cluster


def test_ranges_are_ranges():
    for levels in SUPPORTED_FEATURES.values():
        assert 0 <= levels.lowest <= levels.highest


def test_a_new_cluster_takes_the_highest_level_of_each():
    assert cluster(None).features == {name: levels.highest for name, levels in SUPPORTED_FEATURES.items()}


def test_tools_find_the_clusters_version():
    assert METADATA_VERSION in SUPPORTED_FEATURES


def test_transactions_of_the_second_kind_are_promised():
    assert SUPPORTED_FEATURES["transaction.version"].highest == TransactionVersion.EPOCH_PER_TRANSACTION
