"""Seals of windows: kept as they are, replaced, broken."""

from __future__ import annotations

from dataclasses import replace

from trueup.model.digest import HashSum
from trueup.model.window import Seal
from trueup.ports import Archive

SEAL = Seal("payments", -5, 10, HashSum(3, 2**90), HashSum(0, 0), "form 'ü'", 7, 2**55, 2**55 + 1)


class SealContract:
    """What becomes of seals. A subclass brings `archive`."""

    def test_seals_are_kept_as_they_are_and_come_in_order(self, archive: Archive) -> None:
        later = replace(SEAL, from_us=10, to_us=20)
        archive.seal([later, SEAL, replace(SEAL, pair="refunds")])
        assert archive.seals("payments") == [SEAL, later]
        assert archive.seals("none") == []

    def test_a_window_has_one_seal(self, archive: Archive) -> None:
        archive.seal([SEAL])
        again = replace(SEAL, left=HashSum(4, 1), right=HashSum(4, 1), asked="b", run=8, sealed_us=1, checked_us=2)
        archive.seal([again])
        assert archive.seals("payments") == [again]

    def test_windows_of_other_length_are_others(self, archive: Archive) -> None:
        archive.seal([SEAL, replace(SEAL, to_us=20)])
        assert [seal.to_us for seal in archive.seals("payments")] == [10, 20]

    def test_a_broken_seal_is_gone(self, archive: Archive) -> None:
        other = replace(SEAL, pair="refunds")
        archive.seal([SEAL, other])
        assert archive.break_seals([replace(SEAL, run=99)]) == 1
        assert archive.break_seals([SEAL]) == 0
        assert (archive.seals("payments"), archive.seals("refunds")) == ([], [other])
        archive.seal([])
        assert archive.break_seals([]) == 0
