"""Records about access are kept, replaced and taken back."""

from uuid import UUID

from riverlog.metadata.access_records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    QuotaEntity,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
    access_key,
    lasting,
)
from riverlog.metadata.draft import after
from riverlog.metadata.image import MetadataImage
from riverlog.metadata.snapshot import snapshot_records

ANN = QuotaEntity("user", "ann")
ANYBODY = QuotaEntity("user", None)
CLIENT = QuotaEntity("client-id", "c")

LASTING = [
    ClientQuotaRecord((ANN,), "producer_byte_rate", 5.0),
    ClientQuotaRecord((ANYBODY, CLIENT), "producer_byte_rate", 6.0),
    AccessControlEntryRecord(id=UUID(int=1), resource_name="orders", principal="User:ann"),
    UserScramCredentialRecord("ann", 1, b"salt", b"stored", b"server", 4096),
    UserScramCredentialRecord("ann", 2, b"salt", b"stored", b"server", 4096),
    DelegationTokenRecord(owner="User:ann", renewers=("User:bob",), token_id="t"),
]
TAKEN_BACK = [
    ClientQuotaRecord((ANN,), "producer_byte_rate", remove=True),
    ClientQuotaRecord((CLIENT, ANYBODY), "producer_byte_rate", remove=True),
    RemoveAccessControlEntryRecord(UUID(int=1)),
    RemoveUserScramCredentialRecord("ann", 1),
    RemoveUserScramCredentialRecord("ann", 2),
    RemoveDelegationTokenRecord("t"),
]


def test_what_is_kept_comes_back_from_a_snapshot() -> None:
    image = after(MetadataImage(), LASTING)
    assert len(image.access) == len(LASTING)
    assert after(MetadataImage(), snapshot_records(image)) == image


def test_a_later_record_takes_the_place_of_an_earlier_one() -> None:
    image = after(MetadataImage(), [*LASTING, ClientQuotaRecord((ANN,), "producer_byte_rate", 7.0)])
    assert len(image.access) == len(LASTING)
    assert ClientQuotaRecord((ANN,), "producer_byte_rate", 7.0) in snapshot_records(image)


def test_each_is_taken_back_by_its_own_record() -> None:
    image = after(MetadataImage(), LASTING)
    for kept, gone in zip(LASTING, TAKEN_BACK, strict=True):
        assert access_key(kept) == access_key(gone)
        assert lasting(kept) == kept
        assert lasting(gone) is None
        left = list(snapshot_records(after(image, [gone])))
        assert len(left) == len(LASTING) - 1
        assert kept not in left
    assert after(image, TAKEN_BACK) == MetadataImage()


def test_the_default_of_all_is_not_somebody_without_a_name() -> None:
    assert access_key(ClientQuotaRecord((ANYBODY,), "k")) != access_key(
        ClientQuotaRecord((QuotaEntity("user", ""),), "k")
    )
