"""The workspace as the backend meets it: whose folder, which calls, files over HTTP, and who stays out."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import httpx2
import pytest

from tests.conftest import ROOT
from tests.processes import ServiceProcess
from tests.serving import http_client
from tests.tokens import OTHER_SECRET, mint_token
from tests.waiting import until
from tests.workspace.running import ACCOUNT, SECRET, URL, Person, acting, directory, service, token
from workspace import maintenance


async def test_a_file_is_written_read_searched_run_and_committed(alice: Person) -> None:
    text, details = await alice.call("write_file", path="src/sum.py", content="print(6 * 7)\n")
    assert (text, details["created"]) == ("Created src/sum.py: 13 bytes.", True)
    assert (await alice.call("read_file", path="src/sum.py"))[0] == "File: src/sum.py (1 line)\n1: print(6 * 7)"
    assert (await alice.call("search_files", pattern="pr.nt"))[0] == "src/sum.py:1: print(6 * 7)"
    _, ran = await alice.call("run_command", command="python3 src/sum.py; exit 3")
    assert (ran["exit_code"], ran["stdout"]) == (3, "42\n")
    _, ran = await alice.call("run_python", code="print(open('src/sum.py').read())")
    assert ran["stdout"].startswith("print(6 * 7)")
    await alice.call("edit_file", path="src/sum.py", old_text="7", new_text="8")
    assert re.fullmatch(r"Committed as [0-9a-f]{7,}\.", (await alice.call("commit", message="sum"))[0])
    assert (await alice.call("list_files", depth=2))[0].splitlines() == [".git/", "src/", "src/sum.py"]


async def test_a_long_file_is_written_in_parts(alice: Person) -> None:
    [tool] = [tool for tool in await alice.client.list_tools() if tool.name == "write_file"]
    schema = tool.input_schema["properties"]["append"]
    assert {name: schema[name] for name in schema if name != "description"} == {"type": "boolean", "default": False}
    for part, append in (("one\n", None), ("two\n", True), ("three\n", True)):
        text, details = await alice.call("write_file", path="notes/long.md", content=part, append=append)
    assert text == "Added 6 bytes to notes/long.md: 14 bytes and 3 lines now."
    assert details["bytes"] == 14
    assert (await alice.http.get("/files/cnv_1/notes/long.md")).text == "one\ntwo\nthree\n"
    assert (await alice.call("write_file", path="new.md", content="x", append=True))[0] == "Created new.md: 1 bytes."
    assert await alice.refusal("write_file", path="a", content="x", append="perhaps") == "append must be true or false."


@pytest.mark.long(seconds=2)
async def test_slow_lists_of_one_user_do_not_delay_those_of_others(tmp_path: Path) -> None:
    with directory() as root:
        process = service(root, tmp_path / "log")
        process.start()
        process.wait_until_ready()
        try:
            async with acting(process.url) as alice, acting(process.url, "bob") as bob:
                await alice.call("run_command", command="touch $(seq 5000)")
                await bob.http.get("/files/cnv_1")
                slow = [asyncio.create_task(alice.http.get("/files/cnv_1")) for _ in range(30)]
                await asyncio.wait(slow, return_when=asyncio.FIRST_COMPLETED)
                assert (await bob.http.get("/files/cnv_1")).status_code == 200
                earlier = sum(one.done() for one in slow)
                assert all(response.json()["more"] for response in await asyncio.gather(*slow))
                assert earlier < 8
        finally:
            process.end()


async def test_what_a_command_closed_is_open_for_the_tools(alice: Person) -> None:
    await alice.call("run_command", command="mkdir -p d/e; echo x > d/e/f; chmod 0 d/e/f d/e d .")
    assert (await alice.call("list_files", depth=3))[0].splitlines() == ["d/", "d/e/", "d/e/f"]
    assert await alice.refusal("read_file", path="d/e/f") == (
        "Permission denied for d/e/f: check its permissions and those of the directories above it."
    )
    await alice.call("write_file", path="d/e/g", content="y")
    assert (await alice.http.get("/files/cnv_1")).json()["files"][0]["path"] == "d/e/f"
    await alice.call("run_command", command="chmod 0 d/e d .")
    assert (await alice.http.delete("/files/cnv_1")).json() == {"deleted": True}
    assert (await alice.call("list_files"))[0] == "It is empty."


async def test_arguments_that_are_wrong_are_one_sentence_each(alice: Person) -> None:
    assert await alice.refusal("list_files", depth=4) == "depth must be a whole number from 1 to 3."
    assert await alice.refusal("write_file", path=1) == (
        "path must be text, a path in the folder such as notes/plan.md; content is required and must be text."
    )
    assert (await alice.refusal("remove_all")).startswith("There is no tool remove_all. The tools are list_files, ")


@pytest.mark.parametrize("folder", ["..", "...", "a/b", "a b", "ä", ".\n", "", "../../x", "x" * 101, 7, None])
async def test_a_forged_folder_opens_nothing(alice: Person, root: Path, folder: object) -> None:
    before = sorted(os.listdir(root))
    sentence = await alice.refusal("write_file", folder=folder, path="a", content="x")
    assert re.match(r"A folder's name must be|todo/folder in _meta must be|_meta must contain todo/folder", sentence)
    assert sorted(os.listdir(root)) == before


async def test_two_people_have_nothing_of_each_other(alice: Person, workspace: ServiceProcess, root: Path) -> None:
    await alice.call("write_file", path="plan.md", content="the secret plan")
    async with acting(workspace.url, "bob") as bob:
        assert (await bob.call("list_files"))[0] == "It is empty."
        assert (await bob.http.get("/files/cnv_1/plan.md")).status_code == 404
        _, ran = await bob.call("run_command", command=f"cat {root}/*/cnv_1/plan.md; ls -A {root}; ls -A ..")
        assert "secret" not in ran["stdout"]
        assert (await bob.http.delete("/files")).json() == {"deleted": True}
    assert (await alice.call("read_file", path="plan.md"))[0].endswith("1: the secret plan")
    assert (await alice.http.delete("/files/cnv_1")).json() == {"deleted": True}
    assert (await alice.http.get("/files/cnv_1")).json() == {"files": [], "more": False}


async def test_what_a_command_wrote_is_told(alice: Person) -> None:
    for name in ("same", "edited", "touched", "gone"):
        await alice.call("write_file", path=name, content="x")
    writing = (
        "mkdir -p a/b; echo one >a/b/new; printf y >edited; touch -d 2001-01-01 touched; rm gone; cat same; "
        "ln -s same link; mkfifo pipe; git init -q .; chmod 0 a/b; exit 3"
    )
    _, ran = await alice.call("run_command", command=writing)
    assert ran["files"] == [
        {"path": "a/b/new", "bytes": 4},
        {"path": "edited", "bytes": 1},
        {"path": "touched", "bytes": 1},
    ]
    _, ran = await alice.call("run_python", code="for n in range(20): open(f'n{n:02}', 'w').close()")
    assert [one["path"] for one in ran["files"]] == [f"n{number:02}" for number in range(20)]
    _, ran = await alice.call("run_command", command="cat same")
    assert ran["files"] == []


async def test_a_call_that_is_sent_again_is_made_once(alice: Person) -> None:
    for _ in range(2):
        _, ran = await alice.call("run_command", key="k1", command="date >> times; wc -l < times")
        assert ran["stdout"] == "1\n"
        _, written = await alice.call("write_file", key="k2", path="a.md", content="a")
        assert written["created"] is True
    both = [alice.call("run_command", key="k3", command="sleep 0.5; date >> times; wc -l < times") for _ in range(2)]
    assert [ran["stdout"] for _, ran in await asyncio.gather(*both)] == ["2\n", "2\n"]
    assert "was used by an earlier call" in await alice.refusal("write_file", key="k2", path="b.md", content="a")


async def has_begun(person: Person) -> bool:
    return (await person.http.get("/files/cnv_1/begun")).status_code == 200


async def test_a_command_that_is_stopped_tells_how_far_it_came(alice: Person) -> None:
    began = asyncio.get_running_loop().time()
    running = asyncio.create_task(alice.call("run_command", key="k", command="echo begun; touch begun; sleep 100"))
    await until(lambda: has_begun(alice))
    assert (await alice.http.post("/stop/cnv_1")).json() == {"stopped": True}
    _, ran = await running
    assert (ran["stdout"], ran["stopped"]) == ("begun\n", True)
    assert asyncio.get_running_loop().time() - began < 60
    assert (await alice.http.post("/stop/cnv_1")).json() == {"stopped": False}


async def test_whose_client_leaves_a_command_is_told_when_it_asks_again(alice: Person) -> None:
    call = {"command": "echo begun; touch begun; sleep 100"}
    running = asyncio.create_task(alice.call("run_command", key="k", **call))
    await until(lambda: has_begun(alice))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    _, ran = await alice.call("run_command", key="k", **call)
    assert (ran["stdout"], ran["stopped"]) == ("begun\n", True)


async def test_a_commit_whose_client_leaves_is_made_when_it_asks_again(alice: Person) -> None:
    hook = "#!/bin/sh\n[ -e begun ] || { touch begun; sleep 100; }\n"
    await alice.call("write_file", path="hook", content=hook)
    await alice.call("run_command", command="git init -q; mkdir -p .git/hooks; install hook .git/hooks/pre-commit")
    running = asyncio.create_task(alice.call("commit", key="k", message="hook"))
    await until(lambda: has_begun(alice))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (await alice.call("commit", key="k", message="hook"))[0].startswith("Committed as ")


def memory(process: ServiceProcess) -> int:
    """The most bytes that it has used so far."""
    assert process.process
    status = Path(f"/proc/{process.process.pid}/status").read_text()
    found = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    assert found
    return int(found[1]) * 1024


async def sent(size: int) -> AsyncIterator[bytes]:
    for _ in range(size // 100_000):
        yield b"x" * 100_000


class TestFiles:
    @pytest.mark.long
    async def test_a_large_one_is_never_held_whole(self, alice: Person, workspace: ServiceProcess) -> None:
        before = memory(workspace)
        put = await alice.http.put("/files/cnv_1/up/large.bin", content=sent(100_000_000))
        assert (put.status_code, put.json()) == (201, {"path": "up/large.bin", "bytes": 100_000_000, "created": True})
        size = 0
        async with alice.http.stream("GET", "/files/cnv_1/up/large.bin") as got:
            assert got.headers["content-length"] == "100000000"
            assert got.headers["content-disposition"] == "attachment"
            assert got.headers["x-content-type-options"] == "nosniff"
            async for piece in got.aiter_raw():
                size += len(piece)
        assert size == 100_000_000
        assert memory(workspace) - before < 20_000_000
        (listed,) = (await alice.http.get("/files/cnv_1")).json()["files"]
        assert (listed["path"], listed["size"]) == ("up/large.bin", 100_000_000)

    @pytest.mark.long
    @pytest.mark.parametrize("streamed", [True, False])
    async def test_one_that_is_too_large_is_a_sentence(self, alice: Person, root: Path, streamed: bool) -> None:
        content = sent(150_100_000) if streamed else b"x" * 150_100_000
        put = await alice.http.put("/files/cnv_1/large.bin", content=content)
        assert put.status_code == 413
        assert put.json() == {
            "error": "This file is larger than 150,000,000 bytes, the limit for a file. Upload a smaller one."
        }
        assert (await alice.http.get("/files/cnv_1")).json()["files"] == []
        assert list((root / ".incoming").iterdir()) == []

    async def test_what_is_broken_off_leaves_nothing(self, alice: Person, root: Path) -> None:
        async def broken() -> AsyncIterator[bytes]:
            yield b"x" * 1_000_000
            raise ConnectionError

        with pytest.raises(ConnectionError):
            await alice.http.put("/files/cnv_1/a.bin", content=broken())
        await until(lambda: not list((root / ".incoming").iterdir()))
        assert (await alice.http.get("/files/cnv_1")).json()["files"] == []

    async def test_a_full_folder_takes_no_more_by_any_way(self, alice: Person) -> None:
        for number in range(100):
            assert (await alice.http.put(f"/files/cnv_1/{number}", content=b"x")).status_code == 201
        put = await alice.http.put("/files/cnv_1/more", content=b"x")
        full = "The folder is full: its limit is 100 files. Remove some files first."
        assert (put.status_code, put.json()) == (413, {"error": full})
        assert await alice.refusal("write_file", path="more", content="x") == full
        _, ran = await alice.call("run_command", command="touch a b c")
        assert full in ran["stderr"]
        await alice.call("run_command", command="rm -f [0-9]*")
        assert (await alice.http.put("/files/cnv_1/more", content=b"x")).status_code == 201

    async def test_all_folders_of_a_person_take_so_much_together_whoever_writes_at_once(
        self, alice: Person, workspace: ServiceProcess
    ) -> None:
        full = "The storage of all your conversations is full: its limit is 120 files."
        put = [alice.http.put(f"/files/cnv_{number % 7}/{number}", content=b"x") for number in range(140)]
        answers = await asyncio.gather(*put)
        assert Counter(answer.status_code for answer in answers) == {201: 120, 413: 20}
        assert {answer.json()["error"].startswith(full) for answer in answers if answer.status_code == 413} == {True}
        assert (await alice.refusal("write_file", folder="cnv_8", path="more", content="x")).startswith(full)
        _, ran = await alice.call("run_command", folder="cnv_8", command="touch a b c")
        assert full in ran["stderr"]
        async with acting(workspace.url, "bob") as bob:
            assert (await bob.http.put("/files/cnv_1/his", content=b"x")).status_code == 201
            await bob.http.delete("/files")
        await alice.http.delete("/files/cnv_8")
        await alice.call("run_command", folder="cnv_1", command="rm *")
        assert (await alice.http.put("/files/cnv_2/more", content=b"x")).status_code == 201

    async def test_what_its_person_put_in_is_given_to_another_folder(
        self, alice: Person, workspace: ServiceProcess, root: Path
    ) -> None:
        for name in ("mine.txt", "changed.txt"):
            await alice.http.put(f"/files/cnv_1/{name}", content=b"mine")
        look = f"ls -A {root} {root}/.uploads; echo of an agent | tee changed.txt mine.log"
        _, ran = await alice.call("run_command", command=look)
        assert ran["stdout"] == "of an agent\n", "no command sees what is known of them"
        given = await alice.http.post("/uploads/cnv_1/cnv_1.researcher")
        assert (given.status_code, given.json()) == (200, {"files": ["mine.txt"]})
        _, ran = await alice.call(
            "run_command", folder="cnv_1.researcher", command="cat uploads/*; echo x >uploads/mine.txt"
        )
        assert ran["stdout"] == "mine"
        assert (await alice.http.get("/files/cnv_1/mine.txt")).text == "mine"
        async with acting(workspace.url, "bob") as bob:
            assert (await bob.http.post("/uploads/cnv_1/cnv_1.researcher")).json() == {"files": []}
        assert (await alice.http.post("/uploads/cnv_1/..%2fx")).status_code in (400, 404)

    @pytest.mark.parametrize("path", ["%2e%2e/x", "..%2fx", "a/%00", "", "x" * 300])
    async def test_a_path_that_cannot_be_used(self, alice: Person, path: str) -> None:
        for method in ("PUT", "GET", "DELETE"):
            answer = await alice.http.request(method, f"/files/cnv_1/{path}", content=b"x" if method == "PUT" else None)
            assert answer.status_code in (400, 404)
            assert answer.json().keys() == {"error"}

    async def test_what_is_not_there(self, alice: Person) -> None:
        for folder in ("cnv_1", "cnv_2"):
            answer = await alice.http.get(f"/files/{folder}/none")
            assert answer.status_code == 404
            assert answer.json() == {"error": "There is no none in this folder. Use list_files to see what is there."}


CLAIMS = {"iss": "todo-assistant", "aud": URL, "sub": "alice"}
TOKENS = {
    "none": None,
    "no token": "garbage",
    "another secret": mint_token(OTHER_SECRET, **CLAIMS),
    "for the MCP server": mint_token(SECRET, **CLAIMS | {"aud": "http://127.0.0.1:8001/mcp"}),
    "another issuer": mint_token(SECRET, **CLAIMS | {"iss": "https://idp.example"}),
    "expired": mint_token(SECRET, **CLAIMS, exp=1),
    "nobody": mint_token(SECRET, **CLAIMS | {"sub": ""}),
}


@pytest.mark.parametrize("given", TOKENS.values(), ids=TOKENS)
async def test_nothing_is_served_without_a_token_that_holds(workspace: ServiceProcess, given: str | None) -> None:
    headers = {"authorization": f"Bearer {given}"} if given else {}
    async with http_client(workspace.url, headers=headers) as http:
        for method, path in (
            *(
                ("POST", "/mcp"),
                ("GET", "/mcp"),
                ("DELETE", "/files"),
                ("GET", "/files/cnv_1"),
                ("POST", "/stop/cnv_1"),
                ("POST", "/uploads/cnv_1/cnv_2"),
            ),
            *(("PUT", "/files/cnv_1/a"), ("GET", "/files/cnv_1/a"), ("GET", "/nothing")),
        ):
            content = b"x" * 1_000_000 if method == "PUT" else b"{}" if method == "POST" else None
            kind = {"content-type": "application/json"} if method == "POST" else {}
            answer = await http.request(method, path, content=content, headers=kind)
            assert (answer.status_code, answer.json()["error"]) == (401, "invalid_token")
        for path in ("/health", "/metrics", "/ready"):
            assert (await http.get(path)).status_code == 200


async def test_it_tells_what_confines_its_commands(alice: Person) -> None:
    ready = (await alice.http.get("/ready")).json()
    assert ready["status"] == "ready"
    assert ready["confinement"] in ("bubblewrap", "landlock")
    _, ran = await alice.call("run_command", command="id -u; env")
    assert ran["stdout"].splitlines()[0] == str(ACCOUNT or os.getuid())
    assert SECRET not in ran["stdout"]
    assert "WORKSPACE" not in ran["stdout"]


NEEDED = {"WORKSPACE_DIR": "/nowhere", "WORKSPACE_TOKEN_SECRET": SECRET, "WORKSPACE_PORT": "0"}


def ended(*arguments: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "workspace", *arguments]
    environment = NEEDED | {"PATH": os.environ["PATH"]}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"WORKSPACE_TOKEN_SECRET": ""}, "WORKSPACE_TOKEN_SECRET is not set. See .env.example for what it means.\n"),
        (
            {"WORKSPACE_TOKEN_SECRET": "secret"},
            "WORKSPACE_TOKEN_SECRET must have at least 32 bytes: make one with openssl",
        ),
        (
            {"WORKSPACE_URL": "http://x/"},
            "WORKSPACE_URL must be the address at which the backend reaches the workspace",
        ),
        ({"WORKSPACE_CONFINEMENT": "no"}, "WORKSPACE_CONFINEMENT must be auto, bubblewrap, landlock, sandbox-exec or"),
        (
            {"WORKSPACE_CONFINEMENT": "none", "AUTH_MODE": "jwt"},
            "WORKSPACE_CONFINEMENT=none runs commands without a sandbox, so it is allowed only with AUTH_MODE=none.\n",
        ),
    ],
)
def test_settings_that_cannot_work(
    variables: dict[str, str], sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in (NEEDED | variables).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as stopped:
        maintenance.check([])
    assert (stopped.value.code, capsys.readouterr().err[: len(sentence)]) == (os.EX_CONFIG, sentence)


@pytest.mark.long
def test_where_it_must_not_run_it_ends_with_a_sentence() -> None:
    options = [f"--account={ACCOUNT}"] if ACCOUNT else []
    assert ended(*options) == (
        os.EX_CONFIG,
        "WORKSPACE_DIR /nowhere cannot be used: No such file or directory.\n",
    )
    status, said = ended() if ACCOUNT else ended("--account=61003")
    assert status == os.EX_CONFIG
    assert said.startswith(
        "The workspace does not run as root" if ACCOUNT else "Only root can switch to another account"
    )


@pytest.mark.long(seconds=10)
async def test_an_upload_that_stays_silent_ends_and_a_slow_one_does_not(tmp_path: Path) -> None:
    """However long a file of that size may take."""

    async def slow() -> AsyncIterator[bytes]:
        for _ in range(50):
            yield b"x"
            await asyncio.sleep(0.1)

    with directory() as root:
        process = service(root, tmp_path / "log", READ_TIMEOUT_SECONDS="4")
        process.start()
        process.wait_until_ready()
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", httpx2.URL(process.url).port)
            head = f"PUT /files/cnv_1/a HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token('alice')}\r\n"
            writer.write(f"{head}content-length: 5000000\r\n\r\nx".encode())
            async with asyncio.timeout(240), acting(process.url) as alice:
                answer, uploaded = await asyncio.gather(reader.read(), alice.http.put("/files/cnv_1/b", content=slow()))
            assert answer.startswith(b"HTTP/1.1 408 ")
            assert answer.endswith(b'{"error": "Nothing of the request arrived for 4 seconds."}')
            assert uploaded.json()["bytes"] == 50
            writer.close()
        finally:
            process.end()


START_AND_WAIT = """
import signal, sys
from pathlib import Path
from tests.workspace import running
running.ACCOUNT = int(sys.argv[3])
process = running.service(Path(sys.argv[1]), Path(sys.argv[2]))
process.start()
process.wait_until_ready()
print(process.process.pid, flush=True)
signal.pause()
"""


@pytest.mark.long(seconds=8)
def test_it_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    with directory() as root:
        command = [sys.executable, "-c", START_AND_WAIT, str(root), str(tmp_path / "log"), str(ACCOUNT or 0)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
            assert parent.stdout is not None
            workspace = partial(state_of, int(parent.stdout.readline()))
            assert workspace() not in ("Z", None)
            parent.kill()
            asyncio.run(until(lambda: workspace() in ("Z", None)))


@pytest.mark.long(seconds=11)
async def test_a_start_after_a_kill_clears_what_was_half_done_and_what_nobody_uses(tmp_path: Path) -> None:
    with directory() as root:
        process = service(root, tmp_path / "log")
        process.start()
        process.wait_until_ready()
        with suppress(httpx2.TransportError):  # its client is told when it goes
            async with acting(process.url) as person:
                await person.call("write_file", folder="unused", path="a", content="x")
                running = asyncio.create_task(person.call("run_command", key="k", command="touch begun; sleep 1000"))
                putting = asyncio.create_task(person.http.put("/files/cnv_1/a", content=slowly()))
                await until(lambda: list((root / ".incoming").iterdir()) and list(root.glob("*/cnv_1/begun")))
                process.end(signal.SIGKILL)
                await asyncio.gather(running, putting, return_exceptions=True)
        (answers,) = (root / ".answers").glob("*/unused")
        os.utime(answers, (1e9, 1e9))
        process.environment["KEEP_FOLDERS_DAYS"] = "1"
        process.start()
        process.wait_until_ready()
        assert list((root / ".incoming").iterdir()) == []
        async with acting(process.url) as person:
            assert (await person.call("list_files"))[0] == "begun"
        await until(lambda: not list(root.glob("*/unused")))
        assert process.end() == 0


def state_of(process_id: int) -> str | None:
    """The letter of its state in Linux; None where there is no such process."""
    with suppress(FileNotFoundError):
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
    return None


async def slowly() -> AsyncIterator[bytes]:
    while True:
        yield b"x"
        await asyncio.sleep(0.01)
