"""Dead letters: kept whole, bounded, and the newest stay."""

from __future__ import annotations

from dataclasses import replace

from trueup.model.letter import BYTES_KEPT, LETTERS_KEPT, DeadLetter
from trueup.ports import DeadLetters

LETTER = DeadLetter(
    "shop", 1_000, 422, "The route failed.", b'{"a": "\x00\xff\xc3\xbc"}', 12, {"x-topic": "ü"}, "evt_1"
)


class LetterContract:
    """What becomes of letters. A subclass brings `archive`."""

    def test_a_letter_is_kept_whole(self, archive: DeadLetters) -> None:
        assert archive.keep_letter(LETTER) == 0
        [found] = archive.letters()
        assert found == replace(LETTER, number=found.number)
        assert found.number > 0

    def test_a_letter_may_lack_body_headers_and_delivery(self, archive: DeadLetters) -> None:
        bare = replace(LETTER, body=b"", size=0, headers={}, delivery=None)
        archive.keep_letter(bare)
        [found] = archive.letters("shop")
        assert found == replace(bare, number=found.number)

    def test_the_newest_letters_come_first(self, archive: DeadLetters) -> None:
        for at in (3, 1, 2):
            archive.keep_letter(replace(LETTER, received_us=at))
        assert [letter.received_us for letter in archive.letters()] == [2, 1, 3]
        assert [letter.received_us for letter in archive.letters(limit=2)] == [2, 1]

    def test_letters_are_asked_for_by_source(self, archive: DeadLetters) -> None:
        for source in ("shop", "shop", "bank"):
            archive.keep_letter(replace(LETTER, source=source))
        assert (archive.count_letters("shop"), archive.count_letters("bank"), archive.count_letters()) == (2, 1, 3)
        assert [letter.source for letter in archive.letters("bank")] == ["bank"]
        assert archive.letters("none") == []

    def test_dropped_letters_are_gone(self, archive: DeadLetters) -> None:
        for _ in range(3):
            archive.keep_letter(LETTER)
        numbers = [letter.number for letter in archive.letters()]
        assert archive.drop_letters([numbers[0], numbers[2], 10_000]) == 2
        assert archive.drop_letters([]) == 0
        assert [letter.number for letter in archive.letters()] == [numbers[1]]

    def test_old_letters_are_forgotten_by_their_age(self, archive: DeadLetters) -> None:
        for at in (1, 2, 3):
            archive.keep_letter(replace(LETTER, received_us=at))
        assert archive.forget_letters(3) == 2
        assert archive.forget_letters(3) == 0
        assert [letter.received_us for letter in archive.letters()] == [3]

    def test_a_letter_is_asked_for_by_its_number(self, archive: DeadLetters) -> None:
        for at in (1, 2):
            archive.keep_letter(replace(LETTER, received_us=at))
        newest, oldest = archive.letters()
        assert archive.letter(oldest.number) == oldest
        assert archive.letter(newest.number) == newest
        assert archive.letter(10_000) is None

    def test_a_letter_that_is_refused_again_says_why_and_keeps_its_place(self, archive: DeadLetters) -> None:
        for at in (1, 2, 3):
            archive.keep_letter(replace(LETTER, received_us=at))
        before = archive.letters()
        archive.refuse_letter(before[1].number, 400, "The body is not JSON.")
        archive.refuse_letter(10_000, 400, "Nobody is told.")
        amended = replace(before[1], status=400, reason="The body is not JSON.")
        assert archive.letters() == [before[0], amended, before[2]]

    def test_too_many_bytes_push_out_the_oldest_of_the_same_source(self, archive: DeadLetters) -> None:
        half = replace(LETTER, body=b"x" * (BYTES_KEPT // 2), size=BYTES_KEPT // 2)
        archive.keep_letter(replace(half, source="bank"))
        gone = [archive.keep_letter(replace(half, received_us=at)) for at in (1, 2, 3)]
        assert gone == [0, 0, 1]
        assert [letter.received_us for letter in archive.letters("shop")] == [3, 2]
        assert archive.count_letters("bank") == 1

    def test_a_letter_that_is_larger_than_all_that_is_kept_stays_alone(self, archive: DeadLetters) -> None:
        archive.keep_letter(LETTER)
        assert archive.keep_letter(replace(LETTER, body=b"x" * (BYTES_KEPT + 1), size=BYTES_KEPT + 1)) == 1
        assert archive.count_letters() == 1

    def test_too_many_letters_push_out_the_oldest(self, archive: DeadLetters) -> None:
        gone = sum(archive.keep_letter(replace(LETTER, received_us=at)) for at in range(LETTERS_KEPT + 2))
        assert gone == 2
        assert archive.count_letters() == LETTERS_KEPT
        assert archive.letters(limit=LETTERS_KEPT)[-1].received_us == 2
