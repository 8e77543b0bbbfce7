"""The frame of hidden notes is cut out of what models write, wherever their text is divided."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.context.hidden_context import block
from backend.model.responses.hidden_frame import FrameFilter, cut_frames

FRAME = block("Sat 2026-11-28 22:07, Europe/Berlin")
HEADER, OPENING, NOTE, CLOSING = FRAME.split("\n")
REPEATED = {
    "before the answer": (f"{FRAME}\n\nHello.", "Hello."),
    "between": (f"Hello.\n\n{FRAME}\n\nBye.", "Hello.\n\nBye."),
    "at the end": (f"Hello.\n\n{FRAME}", "Hello.\n\n"),
    "nothing else": (f"{FRAME}\n{FRAME}\n", ""),
    "many times": (f"{FRAME}\n\n" * 12 + "Hello.", "Hello."),
    "on one line": (f"Hello. {HEADER} {OPENING} {NOTE} {CLOSING} Bye.", "Hello. Bye."),
    "capitals and spaces": (f"{FRAME.upper()}\nHello.".replace(" ", "  "), "Hello."),
    "in bold": (f"{HEADER}**\n{OPENING}\n{NOTE}\n{CLOSING}\nHello.", "Hello."),
    "escaped": (f"&lt;HiddenContext&gt;\n{NOTE}\n&lt;/HiddenContext&gt;\nHello.", "Hello."),
    "a note of several paragraphs": ("A\n" + block("one\n\ntwo\n- three") + "\nB", "A\nB"),
    "without its header": (f"{OPENING}\n{NOTE}\n{CLOSING}\nHello.", "Hello."),
    "without its tags": (f"{HEADER} Hello.", "Hello."),
    "without its tags, on lines": (f"{HEADER}\n{NOTE}\nHello.", "Hello."),
    "without its tags, nothing else": (f"Hello.\n\n{HEADER} {NOTE}", "Hello.\n\n"),
    "without its tags, before a short word": (f"{HEADER}\nSat 2 is free.", "Sat 2 is free."),
    "without its closing tag": (f"{HEADER}\n{OPENING}\n{NOTE}\n\nHello.\n\nMore.", "Hello.\n\nMore."),
    "without its closing tag, one paragraph": (f"{HEADER} {OPENING} {NOTE}\nHello.", "Hello."),
    "without its closing tag, many times": (f"{HEADER}\n{OPENING}\n{NOTE}\n\n" * 4 + "Hello.", "Hello."),
    "the answer between two, the first not closed": (
        f"{HEADER}\n{OPENING}\n{NOTE}\n\nHello.\n\n{FRAME}\n\nBye.",
        "Hello.\n\nBye.",
    ),
    "not closed for long": (f"{OPENING}\n{NOTE}\n\n{'Hello, you. ' * 4_000}", "Hello, you. " * 4_000),
    "a long note": (block(f"{NOTE}\n\n" + "- add_task\n\n" * 1_800) + "\nHello.", "Hello."),
    "spaces in its tags": (f"Hello.\n< HiddenContext >\n{NOTE}\n</ HiddenContext >\nBye.", "Hello.\nBye."),
    "an attribute": (f'Hello.\n<HiddenContext id="1">\n{NOTE}\n</HiddenContext>\nBye.', "Hello.\nBye."),
    "square brackets": (f"Hello.\n[HiddenContext]\n{NOTE}\n[/HiddenContext]\nBye.", "Hello.\nBye."),
    "escaped by numbers": (f"&#60;HiddenContext&#62;\n{NOTE}\n&#60;/HiddenContext&#62;\nHello.", "Hello."),
    "tags in backticks": (f"Hello.\n`{OPENING}`\n{NOTE}\n`{CLOSING}`\nBye.", "Hello.\nBye."),
    "tags in backticks, with a header": (f"{HEADER}\n`{OPENING}`\n{NOTE}\n`{CLOSING}`\n\nHello.", "Hello."),
    "all in backticks": (f"Hello.\n`{OPENING}\n{NOTE}\n{CLOSING}`\nBye.", "Hello.\nBye."),
    "half a header": (f"Hello.\n\nHidden context for the agent:\n{FRAME}\nBye.", "Hello.\n\nBye."),
    "half a header, without tags": (f"Hidden context for the agent:\n{NOTE}\n\nHello.", "Hello."),
    "half a header and a clock": (f"**Hidden context for the agent:** {NOTE}\nHello.", "**Hello."),
    "the other half": ("Hello.\nHidden context (not shown to the user):\nBye.", "Hello.\nBye."),
    "the other half and a clock": (f"Hidden context (not shown to the user): {NOTE}\n\nHello.", "Hello."),
    "the other half, cut off": ("Hello.\nHidden context (not shown", "Hello.\n"),
    "a note and its closing tag": (f"{NOTE}\n{CLOSING}\nHello.", "Hello."),
    "a note and its closing tag, between": (f"Hello.\n{NOTE}\n{CLOSING}\n\nBye.", "Hello.\nBye."),
    "only its closing tag": (f"Hello.\n{CLOSING}\nBye.", "Hello.\nBye."),
    "cut off": (f"Hello.\n\n{HEADER[:35]}", "Hello.\n\n"),
    "cut off in its tag": ("Hello.\n<HiddenCont", "Hello.\n"),
    "cut off in its note": (f"Hello.\n{HEADER}\n{OPENING}\nSat 20", "Hello.\n"),
}
OTHER = [
    "What is hidden context? The hidden context of a task is what it does not say.",
    "Hidden context for the agent: a note.",
    "- The hidden context for the agent:\n- a note",
    "Hidden context (not shown to the user) is a note. Hidden context:\n- a note",
    "Two tags:\n\n`<HiddenContext>`\n\n`<HiddenContext id=1>`\n\nare the server's, and `</HiddenContext>`",
    "<hidden context of a task> [hidden context](https://example.com) [ ] Find [hidden fees]",
    "Sat 2026-11-28 22:07, Europe/Berlin",
    "Mon 2026-11-30 09:00, dentist\nTue\nSunday <soon>",
    "The `<HiddenContext>` tag and “</HiddenContext>” are the server's.",
    "The <b>hidden</b> fees, a < b && c <- d &lt; &l",
    "Hidde",
    "x <hid",
    "",
    "  \n Hello \n\n h",
]


def read(pieces: list[str]) -> str:
    frames = FrameFilter()
    return "".join(map(frames.feed, pieces)) + frames.finish()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 19, 10_000])
@pytest.mark.parametrize("case", REPEATED)
def test_frame_is_cut(case: str, size: int) -> None:
    text, rest = REPEATED[case]
    assert read([text[at : at + size] for at in range(0, len(text), size)]) == rest


@pytest.mark.parametrize("text", OTHER)
def test_other_text_stays(text: str) -> None:
    assert read([*text]) == cut_frames(text) == text


@given(st.lists(st.sampled_from([HEADER, OPENING, CLOSING, NOTE, "\n", " ", "`", "Hi", "<", "&lt;", "h"])), st.data())
def test_pieces_do_not_matter(parts: list[str], data: st.DataObject) -> None:
    text = "".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    pieces = [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert read(pieces) == cut_frames(text)
    assert "HiddenContext" not in cut_frames(text).replace("`<HiddenContext>`", "").replace("`</HiddenContext>`", "")


def test_other_text_is_not_held_back() -> None:
    """Not a character of it, but for an end that may begin the frame."""
    frames = FrameFilter()
    for word in ("Hello!", "I", "have", "<now>,", "&", "a", "header.", "So"):
        assert frames.feed(f"{word} ") == f"{word} "
    assert (frames.feed("as H"), frames.feed("idden"), frames.feed(" fees")) == ("as ", "", "Hidden fees")
