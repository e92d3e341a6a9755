"""What an internal topic must be."""

import pytest

from riverlog.cli.internal_topics import unfit


@pytest.mark.parametrize(
    ("name", "partitions", "policy", "wrong"),
    [
        ("__consumer_offsets", 50, "compact", None),
        ("__consumer_offsets", 50, "delete", "__consumer_offsets has cleanup.policy=delete, not compact"),
        ("__transaction_state", 50, "", "__transaction_state has cleanup.policy=none, not compact"),
        ("__transaction_state", 50, "compact,delete", "__transaction_state has cleanup.policy=compact,delete, not"),
        ("__checkpoints", 2, "compact", None),
        ("__checkpoints", 1, "compact", "__checkpoints has 1 partitions, not 2"),
        ("__checkpoints", 2, None, None),
        ("__share_group_state", 1, "delete", None),
    ],
)
def test_an_internal_topic_is_compacted(name: str, partitions: int, policy: str | None, wrong: str | None) -> None:
    found = unfit(name, partitions, policy)
    assert found == wrong if wrong is None else found is not None and found.startswith(wrong)
