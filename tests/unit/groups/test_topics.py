"""The cluster's topics as a coordinator sees them."""

from uuid import UUID

from riverlog.groups.topics import NoTopics, digest, found
from riverlog.metadata.image import MetadataImage
from tests.support.shapes import Shape, Shapes

ORDERS, PAYMENTS = Shape("orders", UUID(int=1), 3), Shape("payments", UUID(int=2), 1)


def test_the_metadata_image_is_such_a_view() -> None:
    assert found(MetadataImage(), ["orders"]) == []
    assert list(MetadataImage().all_topics()) == list(NoTopics().all_topics())
    assert MetadataImage().topic_by_id(ORDERS.id) is NoTopics().topic_by_id(ORDERS.id) is None


def test_only_topics_that_exist_are_found() -> None:
    assert found(Shapes(ORDERS), ["payments", "orders"]) == [ORDERS]
    assert found(NoTopics(), ["orders"]) == []


def test_the_digest_tells_what_an_assignment_depends_on() -> None:
    assert digest([ORDERS, PAYMENTS]) == digest([PAYMENTS, ORDERS])
    seen = {digest(each) for each in ([], [ORDERS], [PAYMENTS], [ORDERS, PAYMENTS], [Shape("orders", ORDERS.id, 4)])}
    seen.add(digest([Shape("orders", UUID(int=9), 3)]))
    assert len(seen) == 6
    assert all(-(2**63) <= each < 2**63 for each in seen)
