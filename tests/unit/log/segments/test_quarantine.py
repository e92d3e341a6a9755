"""Known damage: found by offset, joined, bounded, and the same after it was written down and read again."""

import pytest

from riverlog.log.checkpoint import BadCheckpoint
from riverlog.log.segments import quarantine as module
from riverlog.log.segments.flaws import Flaw
from riverlog.log.segments.quarantine import Quarantine
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import Offset


def flaw(position: int, end: int, first_offset: int, next_offset: int) -> Flaw:
    return Flaw(position, end, Offset(first_offset), Offset(next_offset), "the checksum does not match")


@pytest.fixture
def quarantine() -> Quarantine:
    quarantine = Quarantine()
    quarantine.add(Offset(50), flaw(10, 20, 55, 57))
    quarantine.add(Offset(0), flaw(70, 90, 7, 9))
    quarantine.add(Offset(0), flaw(10, 20, 1, 2))
    return quarantine


def test_offsets_are_looked_up(quarantine: Quarantine) -> None:
    assert [offset for offset in range(60) if quarantine.at(Offset(offset))] == [1, 7, 8, 55, 56]
    assert quarantine.of(Offset(0)) == [flaw(10, 20, 1, 2), flaw(70, 90, 7, 9)]
    assert quarantine.ending_at(Offset(9)) == (0, flaw(70, 90, 7, 9))
    assert quarantine.ending_at(Offset(10)) is None
    with pytest.raises(Refusal, match=r"00000000000000000050.log is damaged at position 10") as refused:
        quarantine.check(Offset(55))
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
    quarantine.check(Offset(57))


def test_what_is_known_already_is_no_news(quarantine: Quarantine) -> None:
    assert (quarantine.found, len(quarantine.unreported), quarantine.unsaved) == (3, 3, True)
    quarantine.add(Offset(0), flaw(10, 20, 1, 2))
    assert quarantine.found == 3


def test_overlapping_flaws_become_one(quarantine: Quarantine) -> None:
    quarantine.add(Offset(0), flaw(15, 75, 2, 8))
    assert quarantine.of(Offset(0)) == [flaw(10, 90, 1, 9)]


def test_they_are_written_down_and_read_again(quarantine: Quarantine) -> None:
    again = Quarantine.decode(quarantine.encode(), "quarantine")
    assert again.entries == quarantine.entries
    assert not again.unsaved
    assert again.unreported == quarantine.entries


def test_any_changed_byte_of_the_file_is_noticed(quarantine: Quarantine) -> None:
    content = quarantine.encode()
    for position in range(len(content)):
        spoilt = content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :]
        with pytest.raises(BadCheckpoint):
            Quarantine.decode(spoilt, "quarantine")
    with pytest.raises(BadCheckpoint):
        Quarantine.decode(b"", "quarantine")


def test_what_is_deleted_is_forgotten(quarantine: Quarantine) -> None:
    assert quarantine.behind(Offset(0)) == quarantine.entries
    assert quarantine.behind(Offset(9)) == quarantine.entries[2:]
    quarantine.unsaved = False
    quarantine.keep([Offset(0), Offset(50)])
    assert not quarantine.unsaved
    quarantine.keep([Offset(50)])
    assert [known.base_offset for known in quarantine.entries] == [50]
    assert quarantine.unsaved
    quarantine.truncate(Offset(55))
    assert quarantine.entries == []


def test_the_list_is_bounded(quarantine: Quarantine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FLAWS_PER_LOG_MAX", 3)
    quarantine.add(Offset(0), flaw(200, 220, 20, 22))
    assert quarantine.of(Offset(0)) == [flaw(10, 20, 1, 2), flaw(70, 220, 7, 22)]
