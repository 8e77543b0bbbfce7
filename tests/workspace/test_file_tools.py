"""Files read, written and edited over MCP: what is answered, what is rejected, and that no path leads out."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.workspace.running import Person

INVALID = [
    *("..", "../x", "a/../../x", "/etc/passwd", "/", "a\0b", "a\nb", "a\x1b[2Jb", "x" * 256, "é" * 128),
    *("/".join(["x" * 200] * 6), "a\u2028b"),
]
Use = Callable[[Person, str], Awaitable[str]]
USES: dict[str, Use] = {
    "read": lambda person, path: person.refusal("read_file", path=path),
    "write": lambda person, path: person.refusal("write_file", path=path, content="mine\n"),
    "edit": lambda person, path: person.refusal("edit_file", path=path, old_text="root", new_text="x"),
}


async def rejection(person: Person, method: str, path: str) -> str:
    """Returns the sentence with which a request for a file is rejected."""
    answer = await person.http.request(method, f"/files/cnv_1/{path}", content=b"mine" if method == "PUT" else None)
    assert answer.status_code in (400, 404), answer.text
    return answer.json()["error"]


async def content_of(person: Person, path: str) -> bytes:
    return (await person.http.get(f"/files/cnv_1/{path}")).content


async def paths(person: Person) -> list[str]:
    return [file["path"] for file in (await person.http.get("/files/cnv_1")).json()["files"]]


async def test_paths_that_cannot_be_used(alice: Person) -> None:
    for path in INVALID:
        for use in USES.values():
            sentence = await use(alice, path)
            assert sentence.isprintable(), path
            assert len(sentence) < 2_000
    assert await paths(alice) == []


@pytest.mark.parametrize("path", ["./a//b", "ä/日"])
async def test_other_spellings_of_a_path(alice: Person, path: str) -> None:
    await alice.call("write_file", path=path, content="x")
    assert (await alice.call("read_file", path=path))[0].endswith("1: x")


OVER_HTTP: dict[str, Use] = {
    "upload": lambda person, path: rejection(person, "PUT", path),
    "download": lambda person, path: rejection(person, "GET", path),
}


@pytest.mark.parametrize("use", [*USES.values(), *OVER_HTTP.values()], ids=[*USES, *OVER_HTTP])
async def test_what_is_no_file(alice: Person, use: Use) -> None:
    """Links, FIFOs, sockets and directories are neither read nor replaced, and nobody waits for them."""
    made = "ln -s /etc/passwd link; ln -s nothing dangling; ln -s self self; mkfifo pipe; mkdir dir; ln -s /etc door"
    await alice.call("run_command", command=f"{made}; echo x > file; ln -s file own")
    links = ("link", "dangling", "self", "own", "door/passwd", "door/fresh", "door/below/fresh")
    for path, kind in {**dict.fromkeys(links, "symbolic link"), "pipe": "FIFO", "dir": "directory"}.items():
        async with asyncio.timeout(240):
            sentence = await use(alice, path)
        assert path.split("/")[0] in sentence
        assert kind in sentence
    left = "readlink link dangling self door own; test -p pipe && test -d dir"
    _, ran = await alice.call("run_command", command=left)
    assert (ran["exit_code"], ran["stdout"].split()) == (0, ["/etc/passwd", "nothing", "self", "/etc", "file"])
    assert await content_of(alice, "file") == b"x\n"


@pytest.mark.long(seconds=14)
async def test_directory_replaced_by_a_link_meanwhile(alice: Person) -> None:
    await alice.call("write_file", path="door/passwd", content="mine\n")
    swaps = "for i in $(seq 400); do mv door aside; ln -s /etc door; rm door; mv aside door; done 2>/dev/null"
    swapping = asyncio.create_task(alice.call("run_command", command=swaps))
    read: set[str] = set()
    while not swapping.done():
        told = await alice.client.call_tool_mcp(
            "read_file", {"path": "door/passwd"}, meta={"todo/folder": "cnv_1", "todo/idempotency_key": None}
        )
        read.add(str(told.content[0]))
    assert read
    assert not [text for text in read if "root:" in text]


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("", []),
        ("one", ["1: one"]),
        ("one\n\nthree\n", ["1: one", "2: ", "3: three"]),
        ("ä\n日本\n", ["1: ä", "2: 日本"]),
    ],
)
async def test_lines_have_numbers(alice: Person, content: str, lines: list[str]) -> None:
    await alice.put("a.md", content)
    assert (await alice.call("read_file", path="a.md"))[0].split("\n")[1:] == lines


async def test_pages(alice: Person) -> None:
    await alice.put("a.md", "".join(f"line {number}\n" for number in range(1, 5_001)))
    text, details = await alice.call("read_file", path="a.md", offset=10, limit=2)
    assert text.splitlines()[1:3] == ["10: line 10", "11: line 11"]
    assert "offset=12" in text
    assert details == {"path": "a.md", "total_lines": 5_000, "bytes": 48_893, "offset": 10, "lines": 2}
    assert (await alice.call("read_file", path="a.md"))[1]["lines"] == 2_000
    assert "5,000" in await alice.refusal("read_file", path="a.md", offset=5_001)


@pytest.mark.parametrize("content", [("ä" * 500 + "\n") * 100, "日" * 70_000 + "\nshort\n"], ids=["lines", "one line"])
async def test_a_page_has_at_most_50_kb(alice: Person, content: str) -> None:
    await alice.put("a.md", content)
    text, details = await alice.call("read_file", path="a.md")
    assert 45_000 < len(text.encode()) <= 50_000
    following = details["lines"] + 1
    assert f"offset={following}" in text
    assert (
        (await alice.call("read_file", path="a.md", offset=following))[0].splitlines()[1].startswith(f"{following}: ")
    )


@pytest.mark.parametrize("content", [b"\x89PNG\r\n\x1a\n\0", b"a" * 9_000 + b"\xff" * 2_000, "Müll".encode("latin-1")])
async def test_what_is_no_text(alice: Person, content: bytes) -> None:
    """It is told by its size, and neither read, added to nor edited."""
    await alice.put("data", content)
    assert f"{len(content):,} bytes" in await alice.refusal("read_file", path="data")
    assert await alice.refusal("write_file", path="data", content="x", append=True)
    assert await alice.refusal("edit_file", path="data", old_text="a", new_text="b")
    assert await content_of(alice, "data") == content


async def test_written_and_replaced(alice: Person) -> None:
    _, details = await alice.call("write_file", path="notes/2026/plan.md", content="one\ntwo\n")
    assert (details["created"], details["bytes"]) == (True, 8)
    assert details["diff"].splitlines()[2:] == ["@@ -0,0 +1,2 @@", "+one", "+two"]
    await alice.call("run_command", command="chmod 755 notes/2026/plan.md; ln notes/2026/plan.md other")
    _, details = await alice.call("write_file", path="notes/2026/plan.md", content="three\n")
    assert details["created"] is False
    _, ran = await alice.call("run_command", command="stat -c %a notes/2026/plan.md; cat other")
    assert ran["stdout"] == "755\none\ntwo\n", "its mode is kept, and a hard link is left as it was"


async def test_size_of_what_is_written(alice: Person) -> None:
    for content in ("x" * 1_000_001, "ä" * 500_001):
        assert await alice.refusal("write_file", path="b.md", content=content)
    await alice.call("write_file", path="a.md", content="x" * 999_999)
    await alice.call("write_file", path="a.md", content="y", append=True)
    assert await alice.refusal("write_file", path="a.md", content="z", append=True)
    assert await paths(alice) == ["a.md"]
    assert (await content_of(alice, "a.md")).endswith(b"xy")


@pytest.mark.parametrize("lines", [1_000, 25_000])
async def test_a_diff_has_at_most_20_kb(alice: Person, lines: int) -> None:
    content = "".join(f"{number:030}\n" for number in range(lines))
    _, details = await alice.call("write_file", path="a.md", content=content)
    assert len(details["diff"].encode()) <= 20_000


PLAN = "milk\nbread\nmilk and honey\n"


async def test_edited(alice: Person) -> None:
    await alice.put("plan.md", PLAN)
    _, details = await alice.call("edit_file", path="plan.md", old_text="bread", new_text="rye bread\nbutter")
    assert await content_of(alice, "plan.md") == b"milk\nrye bread\nbutter\nmilk and honey\n"
    assert details["diff"].splitlines()[3:] == [" milk", "-bread", "+rye bread", "+butter", " milk and honey"]


@pytest.mark.parametrize(
    ("old", "reason"),
    [
        *((old, "old_text not found in plan.md.") for old in ("tea", "2: bread")),
        ("milk", "old_text found 2 times, must be unique"),
        *((old, "Nothing was changed") for old in ("", "new")),
    ],
)
async def test_edit_needs_one_place(alice: Person, old: str, reason: str) -> None:
    await alice.put("plan.md", PLAN)
    assert reason in await alice.refusal("edit_file", path="plan.md", old_text=old, new_text="new")
    assert await content_of(alice, "plan.md") == PLAN.encode()


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"one\r\ntwo\r\nthree\r\n", "one\ntwo", "1\n2", b"1\r\n2\r\nthree\r\n"),
        (b"one\r\ntwo\r\n", "one", "1\n2", b"1\r\n2\r\ntwo\r\n"),
        (b"one\ntwo\r\nthree\nfour\n", "three\nfour", "3\n4", b"one\ntwo\r\n3\n4\n"),
        (b"one\ntwo\r\nthree\nfour\n", "one\ntwo\nthree", "1\n2", b"1\n2\nfour\n"),
        (b"one\ntwo\r\nthree\n", "two\nthree", "2\n3\n4", b"one\n2\r\n3\r\n4\n"),
        (b"one\r\ntwo.\r\n", "two.\n", "2\n", b"one\r\n2\r\n"),
        (b"one\ntwo\n", "one\r\ntwo", "1\r\n2\r\n3", b"1\n2\n3\n"),
        (b"one\r\ntwo\r\n", "one\r\ntwo", "1\r\n2", b"1\r\n2\r\n"),
    ],
)
async def test_edit_keeps_line_ends(alice: Person, before: bytes, old: str, new: str, after: bytes) -> None:
    await alice.put("plan.md", before)
    await alice.call("edit_file", path="plan.md", old_text=old, new_text=new)
    assert await content_of(alice, "plan.md") == after


async def test_depth_of_directories(alice: Person) -> None:
    """None that is written makes the folder too deep to be counted."""
    await alice.call("write_file", path="d/" * 90 + "a", content="x")
    await alice.call("write_file", path="b", content="there is still space")


@pytest.mark.parametrize("path", ["link", "pipe", "dir", "none", "door/passwd"])
async def test_only_a_file_is_deleted(alice: Person, path: str) -> None:
    await alice.call("run_command", command="ln -s /etc/passwd link; mkfifo pipe; mkdir dir; ln -s /etc door; touch a")
    assert (await alice.http.delete(f"/files/cnv_1/{path}")).status_code in (400, 404)
    assert (await alice.http.delete("/files/cnv_1/a")).is_success
    _, ran = await alice.call("run_command", command="ls")
    assert ran["stdout"].split() == ["dir", "door", "link", "pipe"]
