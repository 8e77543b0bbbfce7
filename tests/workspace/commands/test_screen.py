"""Output as a terminal shows it."""

import time

import pytest

from workspace.commands.screen import render_screen


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("plain\n\ttab\n", "plain\n\ttab\n"),
        ("one\r\ntwo\r\n", "one\ntwo\n"),
        ("one\r\r\ntwo\n", "one\ntwo\n"),
        (
            "".join(f"\r{step:3}% [{'#' * (step // 10):10}]" for step in range(101)) + "\ndone\n",
            "100% [##########]\ndone\n",
        ),
        ("10%\r20%\r", "20%"),
        ("long text\rshort\n", "shorttext\n"),
        ("long text\r\x1b[Kshort\n", "short\n"),
        ("long text\x1b[2K\rshort\n", "short\n"),
        ("loading |\b/\b-\b\\\b done\n", "loading  done\n"),
        ("\b\bstart\n", "start\n"),
        ("N\bNA\bAM\bME\bE\n", "NAME\n"),
        ("_\bu_\bn\n", "un\n"),
        ("\x1b[1;31mred\x1b[0m and \x1b[38;5;12mblue\x1b[m\n", "red and blue\n"),
        ("\x1b]0;title\x07\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\\n", "link\n"),
        ("\x1b]0;no end\nnext\n", "\nnext\n"),
        ("\x1b(Bset\x1b[?25lhidden\x1b[?25h\x1b[?2004h\x1b=\n", "sethidden\n"),
        ("a: 0%\nb: 0%\n\x1b[2A\x1b[Ka: 50%\n\x1b[Kb: 90%\n\x1b[2Fa: 100%\n\x1b[1Bend\n", "a: 100%\nb: 90%\nend\n"),
        ("one\ntwo\nthree\x1b[2F\x1b[Jnew\n", "new\n"),
        ("old\n\x1b[H\x1b[2Jnew\n", "new\n"),
        ("\x1b[2;3Hx\x1b[1;1Hy\n", "y\n  x"),
        ("name\x1b[10Gok\n", "name     ok\n"),
        ("abcdef\x1b[3D\x1b[P\x1b[X\n", "abc f\n"),
        ("a\x1b7b\x1b8c\n", "ac\n"),
        ("日本\r語\n", "語本\n"),
        ("e\u0301a\rx\n", "xa\n"),
        ("bell\x07 nul\x00 del\x7f\n", "bell nul del\n"),
        ("page\x0cnext\n", "page\nnext\n"),
        ("cut \x1b[", "cut "),
        ("cut \x1b", "cut "),
        ("\x9b31mred\n", "red\n"),
        ("", ""),
        ("\r", ""),
    ],
)
def test_rendered(written: str, shown: str) -> None:
    assert render_screen(written) == shown


@pytest.mark.parametrize(
    "written",
    [
        "\r" * 200_000,
        "\x1b[" * 100_000,
        "\x1b[" + "0" * 200_000,
        "\x1b]" * 100_000,
        "\x1b[9999C.\n" * 20_000,
        "\x1b[9999;9999H.\n" * 15_000,
        "\x1b[A\n" * 50_000,
        "\x1b[2J\n" * 40_000,
        "x\b" * 100_000,
    ],
    ids=range(9),
)
def test_no_output_takes_long_or_grows(written: str) -> None:
    began = time.process_time()
    assert len(render_screen(written)) < 2_000_000
    assert time.process_time() - began < 5
