import random

import pytest

from workspace.commands.output import Output, shown


def output(data: bytes, most: int, *, portion: int = 7) -> Output:
    kept = Output(most)
    for start in range(0, len(data), portion):
        kept.add(data[start : start + portion])
    return kept


@pytest.mark.parametrize("length", [0, 1, 19, 20])
def test_what_may_be_kept_is_kept(length: int) -> None:
    kept = output(b"x" * length, 20)
    assert (kept.text(), kept.truncated) == ("x" * length, False)


def test_of_more_both_ends_are_kept() -> None:
    kept = output(b"".join(b"%05d\n" % number for number in range(1_000)), 24)
    assert kept.truncated
    assert kept.text() == "00000\n00001\n\n[… 5,976 bytes left out …]\n00998\n00999\n"


def test_cut_characters_are_left_out_and_other_bytes_are_marked() -> None:
    assert output("ä€😀".encode() * 10, 13).text().startswith("ä€\n[…")
    assert output("ä€😀".encode() * 10, 13).text().endswith("]\n😀")
    assert output(b"a\xff\x00\xc3(b", 20).text() == "a??" + "?(b"


def test_what_is_kept_is_never_longer() -> None:
    assert len(output(random.Random(1).randbytes(100_000), 1_000).text().encode()) < 1_100


def test_the_model_reads_the_last_whole_lines() -> None:
    lines = [f"line {number}" for number in range(3_000)]
    assert shown("\n".join(lines[:2_000])) == "\n".join(lines[:2_000])
    told, *rest = shown("\n".join(lines)).splitlines()
    assert told == "[the beginning is left out, these are the last 2,000 lines]"
    assert rest == lines[1_000:]
    told, *rest = shown("\n".join(lines), most_bytes=30).splitlines()
    assert told == "[the beginning is left out, these are the last 3 lines]"
    assert rest == lines[-3:]
    assert shown("a\n\nb\n\n\n") == "a\n\nb"
    assert shown("ä" * 100, most_bytes=11).endswith("\näääää")
