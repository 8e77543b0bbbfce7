"""Commands, Python, searches and commits over MCP."""

import asyncio
from pathlib import Path

import pytest

from tests.processes import ServiceProcess
from tests.waiting import until
from tests.workspace.running import Person, acting, directory, service

pytestmark = pytest.mark.long


async def test_python_runs_in_the_folder(alice: Person) -> None:
    await alice.put("own.py", "number = 6 * 7")
    _, ran = await alice.call("run_python", code="import own\nprint(own.number)\n1 / 0")
    assert (ran["exit_code"], ran["stdout"]) == (1, "42\n")
    assert "line 3" in ran["stderr"]


async def test_both_ends_of_a_long_output_are_kept(alice: Person) -> None:
    long = "echo first; head -c 30000000 /dev/zero | tr '\\0' a; printf '\\377'; echo last"
    text, ran = await alice.call("run_command", command=long)
    assert ran["truncated"] is True
    assert ran["stdout"].startswith("first\n")
    assert ran["stdout"].endswith("last\n")
    assert len(ran["stdout"]) < 1_000_000
    assert len(text) < 100_000


async def test_output_is_what_a_terminal_shows(alice: Person) -> None:
    bar = "for step in range(2_001): print(f'\\r{step // 20:3}% [{step}]', end='', flush=step % 100 == 0)\nprint()"
    text, ran = await alice.call("run_python", code=bar)
    assert ran["stdout"] == "100% [2000]\n"
    assert text.endswith("stdout:\n100% [2000]")
    colours = r"printf '\033[31mred\033[0m\n' >&2; printf 'a\tb\r\nworking \b.\n'"
    text, ran = await alice.call("run_command", command=colours)
    assert (ran["stdout"], ran["stderr"]) == ("a\tb\nworking.\n", "red\n")
    assert "\x1b" not in text


async def test_folder_that_a_command_has_closed(alice: Person) -> None:
    await alice.call("run_command", command="chmod 000 .")
    assert (await alice.call("run_command", command="touch f"))[1]["exit_code"] == 0


@pytest.mark.parametrize(
    ("command", "timeout_s"),
    [("a\0b", 1), ("x" * 100_001, 1), ("true", 0), ("true", 601)],
    ids=["NUL", "too long", "no time", "too much time"],
)
async def test_what_cannot_be_run(alice: Person, command: str, timeout_s: int) -> None:
    assert await alice.refusal("run_command", command=command, timeout_s=timeout_s)


class TestSearch:
    async def test_pattern_place_and_name(self, alice: Person) -> None:
        await alice.put("in/a b.py", "first\nsecond: 12:30\n")
        await alice.put("c.txt", "second\n" + "second" * 1_000)
        await alice.put("binary", b"second\0")
        text, details = await alice.call("search_files", pattern="^sec(ond|to)", glob="*.py")
        assert text == "in/a b.py:2: second: 12:30"
        assert details["hits"] == [{"path": "in/a b.py", "line": 2, "text": "second: 12:30"}]
        assert len((await alice.call("search_files", pattern="second"))[1]["hits"]) == 3
        assert len((await alice.call("search_files", pattern="second", path="c.txt"))[0]) < 600
        assert (await alice.call("search_files", pattern="-e nothing"))[1]["hits"] == []

    @pytest.mark.parametrize(
        ("glob", "found"),
        [
            ("*.ts", ["a.ts", "lib/src/c.ts", "src/b.ts", "src/deep/d.ts"]),
            ("**/*.ts", ["a.ts", "lib/src/c.ts", "src/b.ts", "src/deep/d.ts"]),
            ("src/*.ts", ["src/b.ts"]),
            ("./src/**", ["src/b.ts", "src/deep/d.ts", "src/e.py"]),
            ("src/**/*.ts", ["src/b.ts", "src/deep/d.ts"]),
            ("[!a].ts", ["lib/src/c.ts", "src/b.ts", "src/deep/d.ts"]),
            ("?.py", ["src/e.py"]),
        ],
    )
    async def test_globs(self, alice: Person, glob: str, found: list[str]) -> None:
        for path in ("a.ts", "src/b.ts", "lib/src/c.ts", "src/deep/d.ts", "src/e.py"):
            await alice.put(path, "hit\n")
        hits = (await alice.call("search_files", pattern="hit", glob=glob))[1]["hits"]
        assert sorted(hit["path"] for hit in hits) == found
        if glob.startswith("*."):
            hits = (await alice.call("search_files", pattern="hit", path="src", glob=glob))[1]["hits"]
            assert sorted(hit["path"] for hit in hits) == ["src/b.ts", "src/deep/d.ts"]

    async def test_patterns(self, alice: Person) -> None:
        await alice.put("a:12:b.txt", "version 42\nletter d\n\ttab: a (b)\n")
        for pattern, line in ((r"version \d+", 1), (r"[\d]2", 1), (r"\bd$", 2), (r"^\ttab", 3), ("(x|a) ", 3)):
            hits = (await alice.call("search_files", pattern=pattern))[1]["hits"]
            assert [(hit["path"], hit["line"]) for hit in hits] == [("a:12:b.txt", line)], pattern

    @pytest.mark.parametrize(
        ("content", "pattern", "lines"),
        [
            (b"x 1\r\nbar = 2\r\n\r\nend", "1$", [1]),
            (b"x 1\r\nbar = 2\r\n\r\nend", "^bar = 2$", [2]),
            (b"x 1\r\nbar = 2\r\n\r\nend", "^$", [3]),
            (b"x 1\r\nbar = 2\r\n\r\nend", "x|^end$|(2)$", [1, 2, 4]),
            (b"a\rbar\rc\r", "^bar$", [1]),
            (b"price 5$\nx\n", r"5\$", [1]),
            (b"\xef\xbb\xbffirst\nfirst\n", "^first$", [1, 2]),
            (b"\xef\xbb\xbffirst\n^x\n", r"\^x", [2]),
            (b"caf\xe9 here\nthere\n", "here", [1, 2]),
            (b"x\x0cy\nhit\xe2\x80\xa8z\nhit\n", "hit", [2, 3]),
            (b"one\ntwo\n", "(*UCP)two", [2]),
            (b"hit\x00hit\n", "hit", []),
        ],
    )
    async def test_lines_of_other_forms(self, alice: Person, content: bytes, pattern: str, lines: list[int]) -> None:
        await alice.put("a.txt", content)
        text, details = await alice.call("search_files", pattern=pattern)
        assert [hit["line"] for hit in details["hits"]] == lines
        assert "\r\n" not in text
        assert "\ufeff" not in text
        assert not text.endswith("\r")

    async def test_files_in_utf16_are_named(self, alice: Person) -> None:
        """They are not searched; other binary files are none of text."""
        await alice.put("in/a.txt", "needle\n".encode("utf-16"))
        await alice.put("b c.ps1", b"\xfe\xff" + "þ needle\n".encode("utf-16-be"))
        await alice.put("line\u00e4.csv", b"\xff\xfe" + "\u00fe".encode("utf-16-le"))
        for name, content in {"image": b"\x89PNG\0\n\xff\xfen\0", "empty": b"", "c.txt": b"needle\n"}.items():
            await alice.put(name, content)
        text, details = await alice.call("search_files", pattern="needle")
        assert [hit["path"] for hit in details["hits"]] == ["c.txt"]
        note = "[not searched, because the text is in UTF-16: {}. Convert it first, as with iconv]"
        assert text == "c.txt:1: needle\n" + note.format("b c.ps1, in/a.txt, lineä.csv")
        for where in ({"glob": "*.txt"}, {"path": "in"}):
            text = (await alice.call("search_files", pattern="nothing", **where))[0]
            assert text == f"No line matches.\n{note.format('in/a.txt')}"
        assert (await alice.call("search_files", pattern="x", glob="*.md"))[0] == "No line matches."
        for number in range(8):
            await alice.put(f"d/{number}", "x".encode("utf-16"))
        text = (await alice.call("search_files", pattern="x", path="d"))[0]
        assert note.format("d/0, d/1, d/2, d/3, d/4 and others") in text

    @pytest.mark.parametrize("before", [0, 50, 399, 600, 5_000, 400_000])
    @pytest.mark.parametrize("after", [0, 350, 5_000, 400_000])
    async def test_match_is_in_what_is_shown(self, alice: Person, before: int, after: int) -> None:
        await alice.put("a.txt", "first\n" + "ä" * before + "NEEDLE = 1" + "z" * after + "\nlast\n")
        text, details = await alice.call("search_files", pattern=r"NEEDLE = \d")
        [hit] = details["hits"]
        assert (hit["line"], "NEEDLE = 1" in hit["text"]) == (2, True)
        assert len(text) < 450
        shown = len(hit["text"].replace("[…]", ""))
        assert hit["text"].startswith("[…]") == (
            before > 300 or (before > 100 and shown == 400 and before + after > 390)
        )
        assert (shown == before + after + 10) == ("[…]" not in hit["text"])

    async def test_hits_of_long_lines(self, alice: Person) -> None:
        """Each shown hit has its match, also where the output had to be cut in its middle."""
        await alice.put("a.txt", ("x" * 3_000 + " needle " + "y" * 3_000 + "\n") * 300)
        text, details = await alice.call("search_files", pattern="needle")
        assert len(details["hits"]) > 40
        assert all("needle" in hit["text"] for hit in details["hits"])
        assert details["truncated"]
        assert "more matches" in text

    async def test_only_the_first_hits(self, alice: Person) -> None:
        await alice.put("many", "hit\n" * 1_000)
        assert len((await alice.call("search_files", pattern="hit"))[1]["hits"]) == 200

    @pytest.mark.parametrize(
        ("pattern", "path"), [("x", "/etc"), ("x", ".."), ("x", "in/../.."), ("(", "."), ("x", "missing")]
    )
    async def test_what_cannot_be_searched(self, alice: Person, pattern: str, path: str) -> None:
        assert await alice.refusal("search_files", pattern=pattern, path=path)


class TestCommit:
    async def test_all_of_the_folder(self, alice: Person) -> None:
        message = '"It\'s" $(touch made) `touch made`\n\n-m x'
        await alice.put("f", "x")
        _, committed = await alice.call("commit", message=message)
        _, ran = await alice.call("run_command", command="git log --format='%h %an%n%B' && git status --short")
        assert ran["stdout"].strip() == f"{committed['commit']} todo-assistant\n{message}"
        assert await alice.refusal("commit", message="again"), "nothing has changed"

    @pytest.mark.parametrize("left", ["index.lock", "HEAD.lock", "config.lock", "refs/heads/main.lock"])
    async def test_after_a_killed_git(self, alice: Person, left: str) -> None:
        await alice.put("a", "a")
        await alice.call("commit", message="first")
        await alice.call("run_command", command=f"touch .git/{left} b")
        assert (await alice.call("commit", message="second"))[1]["commit"]

    @pytest.mark.parametrize("missing", ["HEAD", "objects", "refs", "config"])
    async def test_after_a_killed_git_init(self, alice: Person, missing: str) -> None:
        await alice.put("a", "a")
        await alice.call("run_command", command=f"git init -q && rm -rf .git/{missing}")
        assert (await alice.call("commit", message="first"))[1]["commit"]

    async def test_hook(self, alice: Person) -> None:
        """What it does is confined, and its rejection is told."""
        await alice.put("f", "x")
        await alice.call("commit", message="first")
        hook = "printf '#!/bin/sh\\ncat /etc/passwd\\necho rejected by the hook >&2\\nexit 1\\n'"
        await alice.call(
            "run_command", command=f"cd .git/hooks; {hook} >pre-commit; chmod +x pre-commit; echo y >../../f"
        )
        sentence = await alice.refusal("commit", message="second")
        assert "rejected by the hook" in sentence
        assert "root:" not in sentence

    @pytest.mark.parametrize(
        ("before", "reasons"),
        [
            ("git init -q sub; echo a >sub/a", ["sub, whose files", ".gitignore"]),
            ("git init -q sub; echo a >sub/a; cd sub; git add a; git commit -qm x", ["sub, whose files"]),
            ("git init -q deep/er/sub; git init -q b", ["b, deep/er/sub, whose files"]),
            ("git init -q other; mkdir sub; mv other/.git .kept; echo gitdir: ../.kept >sub/.git", ["sub, whose"]),
            ("git init -q s; git -C s commit -q --allow-empty -m x; git init -q; git add s 2>&1", ["s, whose files"]),
            (
                "git init -qb main; echo 1 >f; git add f; git commit -qm 1; git checkout -qb b; echo 2 >f; "
                "git commit -qam 2; git checkout -q main; echo 3 >f; git commit -qam 3; git merge -q b",
                ["conflicts in f", "git add"],
            ),
            ("git init -q; git config commit.gpgsign true; git config gpg.program false", ["gpg failed to sign"]),
            (
                "git init -q; git config user.useConfigOnly true; git config filter.x.clean false; "
                "git config filter.x.required true; echo '* filter=x' >.gitattributes",
                ["filter 'false' failed"],
            ),
            (
                "git init -q; printf '#!/bin/sh\\necho one; echo two >&2; exit 1' >.git/hooks/commit-msg; "
                "chmod +x .git/hooks/*",
                ["one\ntwo"],
            ),
        ],
    )
    async def test_what_keeps_git_from_committing(self, alice: Person, before: str, reasons: list[str]) -> None:
        await alice.put("new", "x")
        await alice.call("run_command", command=before)
        count = "git rev-list --all 2>/dev/null | wc -l"
        commits = (await alice.call("run_command", command=count))[1]["stdout"]
        sentence = await alice.refusal("commit", message="all")
        assert sentence.startswith("Nothing was committed: ")
        for reason in reasons:
            assert reason in sentence
        assert (await alice.call("run_command", command=count))[1]["stdout"] == commits

    @pytest.mark.parametrize(
        ("before", "note"),
        [
            ("git init -q; git init -q sub; echo sub >.gitignore", None),
            ("git init -q; git init -q node_modules/sub; echo node_modules >.gitignore", None),
            ("mkdir -p sub/.git; echo a >sub/a", None),
            ("export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=init.templateDir GIT_CONFIG_VALUE_0=; "  # few files
             "git init -q o; git -C o commit -q --allow-empty -m x; git init -q; "
             "git -c protocol.file.allow=always submodule --quiet add file://$PWD/o sub; rm -rf o", None),
            ("git init -q; printf '#!/bin/sh\\nexit 1' >.git/hooks/pre-commit", "hook was ignored"),
            ("git init -q; printf '#!/bin/sh\\necho y >new' >.git/hooks/pre-commit; chmod +x .git/hooks/*",
             "The commit lacks changes of new,"),
            ("git init -q; git config core.autocrlf input; printf 'a\\r\\n' >crlf", "CRLF will be replaced by LF"),
        ],
    )  # fmt: skip
    async def test_what_git_says_of_a_commit(self, alice: Person, before: str, note: str | None) -> None:
        await alice.put("new", "x")
        await alice.call("run_command", command=before)
        text, details = await alice.call("commit", message="all")
        assert text.split("\n")[0] == f"Committed as {details['commit']}."
        assert (note is None) == ("\n" not in text)
        assert (note or "") in text
        assert "new" in (await alice.call("run_command", command="git show --stat"))[1]["stdout"]


async def test_unconfined_nothing_is_run_that_a_command_left_at_home(tmp_path: Path) -> None:
    with directory() as root:
        process = service(root, tmp_path / "log", WORKSPACE_CONFINEMENT="none")
        process.start()
        try:
            process.wait_until_ready()
            async with acting(process.url) as alice:
                where = "import site; print(site.getusersitepackages().partition('/.local/')[2])"
                site = (await alice.call("run_python", code=where))[1]["stdout"].strip()
                for name in (".profile", ".bash_profile", ".bashrc"):
                    await alice.put(name, "touch planted\n")
                await alice.put(f".local/{site}/usercustomize.py", "open('planted', 'w')\n")
                await alice.put(".gitconfig", "[core]\nfsmonitor = touch planted; false\n")
                await alice.call("run_command", command="python3 -c 1")
                await alice.call("run_python", code="1")
                assert (await alice.call("commit", message="all of it"))[1]["commit"]
                assert (await alice.http.get("/files/cnv_1/planted")).status_code == 404
        finally:
            process.end()


async def test_queued_commands_of_one_user_hold_up_nobody_else(alice: Person, workspace: ServiceProcess) -> None:
    """Four commands of a user run at once and one in a folder; the others wait, and each runs in its turn."""
    folders = [f"folder-{number}" for number in range(6)]
    waiting = [
        asyncio.create_task(alice.call("run_command", folder=folder, command="touch begun; sleep 300", timeout_s=300))
        for folder in folders
    ]
    waiting.append(asyncio.create_task(alice.call("run_command", folder=folders[0], command="echo next")))

    async def running() -> list[str]:
        answers = [await alice.http.get(f"/files/{folder}/begun") for folder in folders]
        return [folder for folder, answer in zip(folders, answers, strict=True) if answer.status_code == 200]

    async def all_have_begun() -> bool:
        return len(await running()) == 4

    await until(all_have_begun)
    async with acting(workspace.url, f"{id(waiting)}-bob") as bob:
        _, ran = await bob.call("run_command", command="echo at once")
        assert ran["stdout"] == "at once\n"
    assert len(await running()) == 4, "no more of one user's"
    assert (await alice.call("list_files", folder=folders[0]))[0] == "begun", "files are read meanwhile"
    stopped = set[str]()
    async with asyncio.timeout(240):
        while not all(task.done() for task in waiting):
            for folder in set(await running()) - stopped:
                await alice.http.post(f"/stop/{folder}")
                stopped.add(folder)
            await asyncio.sleep(0.05)
    results = [(await task)[1] for task in waiting]
    assert [one["stopped"] for one in results] == [True] * 6 + [False]
    assert results[-1]["stdout"] == "next\n"
