"""Settings of `./todo`: how `.env` is read, and that wrong ones are reported before anything is made."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.services import env_file
from tests.conftest import ROOT, find_free_port
from tests.fake_ollama import send, serve_ollama
from tests.processes import INHERITED
from tests.waiting import WAIT_SECONDS

PACKAGES = (
    *("backend", "bench", "cli", "common", "english", "evals", "mcp_server", "migrations", "offline_model"),
    *("todo_client", "workspace"),
)
SECRET = "sk-very-secret"
Todo = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def checkout(shared_dir: Path) -> Path:
    """A copy of the program, whose `.env` is the test's."""
    root = shared_dir / "checkout"
    for package in PACKAGES:
        shutil.copytree(ROOT / package, root / package, ignore=shutil.ignore_patterns("__pycache__"))
    return root


@pytest.fixture
def todo(checkout: Path) -> Todo:
    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        return subprocess.run(
            [sys.executable, "-P", "-m", "cli", *arguments],
            cwd="/",
            env={**inherited, "PYTHONPATH": str(checkout), "NO_COLOR": "1", **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=WAIT_SECONDS,
            check=False,
        )

    return run


UNREADABLE = {
    "a colon": (f"LLM_API_KEY: {SECRET}\n", [1]),
    "an open quote": (f'# the model\n\nLLM_API_KEY="{SECRET}\n', [3]),
    "an open quote before another": (f"LLM_API_KEY='{SECRET}\nLLM_MODEL='m'\n", [1]),
    "an open quote that ends later": (f"LLM_MODEL=m\nLLM_API_KEY='{SECRET}\nLLM_ROLES=any'\n", [2]),
    "an item of a list": (f"- LLM_API_KEY={SECRET}\n", [1]),
    "no value": (f"LLM_API_KEY {SECRET}\r\nexport LLM_MODEL\r\n", [1, 2]),
    "no name": (f"={SECRET}\n'A B'={SECRET}\n\nLLM_MODEL=m\n-A={SECRET}", [1, 2, 5]),
    "text after a value": (f"LLM_API_KEY='{SECRET}' {SECRET}\n", [1]),
    "a character that no value can have": (f"LLM_API_KEY={SECRET}\0\n", [1]),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_line_that_cannot_be_read(tmp_path: Path, case: str) -> None:
    text, lines = UNREADABLE[case]
    file = tmp_path / ".env"
    file.write_bytes(text.encode())
    with pytest.raises(env_file.SettingsError) as raised:
        env_file.read(file)
    _, *sentences = str(raised.value).splitlines()
    assert [sentence.strip().partition(": ")[0] for sentence in sentences] == [f"{file}:{line}" for line in lines]
    assert SECRET not in str(raised.value)


READABLE = {
    "signs of a shell": ("LLM_API_KEY=pa$$w0rd${HOME}$(id)`id`\\n", "pa$$w0rd${HOME}$(id)`id`\\n"),
    "quotes": ("LLM_API_KEY=\"a $b ${c} # 'd'\" # e", "a $b ${c} # 'd'"),
    "single quotes": ("LLM_API_KEY='a $b ${c} # \"d\"'", 'a $b ${c} # "d"'),
    "a comment": ("#LLM_API_KEY=a\n LLM_API_KEY = b # c", "b"),
    "the signs of Windows": ("\ufeffLLM_API_KEY=a\r\n\r\n# b\r\n", "a"),
    "export": ("export LLM_API_KEY=a=b", "a=b"),
    "the last of several": ("LLM_API_KEY=a\nLLM_API_KEY=b\n", "b"),
    "nothing": ("LLM_API_KEY=\n", ""),
    "small letters": ("llm_api_key=a\n", "a"),
}


@pytest.mark.parametrize("case", READABLE)
def test_value(tmp_path: Path, case: str) -> None:
    text, value = READABLE[case]
    file = tmp_path / ".env"
    file.write_bytes(text.encode())
    assert {name: entry.value for name, entry in env_file.read(file).items()} == {"LLM_API_KEY": value}


def test_link_to_nothing(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.symlink_to(tmp_path / "nothing")
    with pytest.raises(env_file.SettingsError, match=str(file)):
        env_file.read(file)


@pytest.mark.parametrize("content", [b"LLM_MODEL=caf\xe9\n", "LLM_MODEL=m\n".encode("utf-16"), None])
def test_file_that_cannot_be_read(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / ".env"
    if content is None:
        file.mkdir()
    else:
        file.write_bytes(content)
    with pytest.raises(env_file.SettingsError, match=str(file)):
        env_file.read(file)


@pytest.mark.parametrize(
    "command",
    [
        ("up",),
        ("models",),
        ("usage",),
        ("token", "--user", "local"),
        ("mcp", "test", "web"),
        ("export", "--user", "local"),
        ("backup", "/tmp/backup.zip"),
        ("migrate",),
        ("chat", "--exec", "hello"),
        ("eval",),
    ],
    ids=" ".join,
)
@pytest.mark.long
def test_every_command_stops(todo: Todo, checkout: Path, command: tuple[str, ...]) -> None:
    (checkout / ".env").write_text(f"LLM_MODEL=m\n\nLLM_API_KEY: {SECRET}\n")
    done = todo(*command)
    assert (done.returncode, done.stdout) == (os.EX_CONFIG, "")
    assert f"{checkout}/.env:3: " in done.stderr
    assert SECRET not in done.stderr
    assert not (checkout / ".data").exists()


@pytest.mark.long
def test_key_is_sent_as_it_is_written(todo: Todo, checkout: Path) -> None:
    keys: list[str] = []

    def answer(handler: object) -> None:
        keys.append(handler.headers["authorization"])  # pyright: ignore[reportAttributeAccessIssue]
        send(handler, {"object": "list", "data": [{"id": "m", "object": "model"}]})  # pyright: ignore[reportArgumentType]

    with serve_ollama(instead=answer) as host:
        settings = ("LLM_PROVIDER=custom", f"LLM_BASE_URL=http://{host}/v1", "LLM_MODEL=n", "LLM_MODEL=m", "HOUSE=1")
        (checkout / ".env").write_text("\n".join([*settings, "LLM_API_KEY=pa$$w0rd${HOME}"]))
        done = todo("models", OLLAMA_HOST=f"127.0.0.1:{find_free_port()}")
    assert done.returncode == 0, done.stderr
    assert {*keys} == {"Bearer pa$$w0rd${HOME}"}
    assert done.stdout.startswith("Settings of .env and this terminal.\n")
    assert "HOUSE is not a setting of this program" in done.stderr
    assert "LLM_MODEL has two values; line 4 counts, and not line 3." in done.stderr


@pytest.mark.long
class TestWrongSettings:
    FILE = f"""\
LLM_TEMPERATURE=9

TIME_ZONE=Mars/Olympus
LIMIT_FOLDER_BYTES=much
LIMIT_RUN_SECONDS=0
APPROVALS=bulk,delete_tsk
OFFLINE_TOKEN_DELAY=-1
MCP_TOKEN_SECRET={SECRET}
KEEP_CHANGES_DAYS=1
LLM_API_KEY={SECRET}
LLM_PROVIDER=offline
LLM_ROLES={SECRET}
OPENAI_API_KEY=“{SECRET}”
GROQ_API_KEY="{SECRET}\\nX: y"
OTEL_EXPORTER_OTLP_ENDPOINT=ftp://me:{SECRET}@traces.example
"""
    LINES = (1, 3, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15)

    def check(self, done: subprocess.CompletedProcess[str], checkout: Path) -> None:
        assert done.returncode == os.EX_CONFIG
        sentences = done.stderr.splitlines()[1:]
        expected = {f"{checkout}/.env:{line}" for line in self.LINES} | {"environment"}
        assert {sentence.strip().partition(": ")[0] for sentence in sentences} == expected
        assert len(sentences) == len(expected), "each is reported once"
        assert "environment: BACKEND_PORT must be a port" in done.stderr
        assert SECRET not in done.stderr

    def test_all_of_all_services_before_anything_is_made(self, todo: Todo, checkout: Path) -> None:
        (checkout / ".env").write_text(self.FILE)
        done = todo("up", BACKEND_PORT="many", TIME_ZONE="")
        assert done.stdout == ""
        assert not (checkout / ".data").exists()
        done.stderr += f"{checkout}/.env:3: the environment has an empty one over it\n"
        self.check(done, checkout)

    def test_where_there_is_a_database(self, todo: Todo, checkout: Path) -> None:
        created = todo("migrate", "--data-dir", str(checkout / ".data"))
        assert created.returncode == 0, created.stderr
        (checkout / ".env").write_text(self.FILE)
        done = todo("up", BACKEND_PORT="many")
        self.check(done, checkout)
        assert "starting  Backend" not in done.stdout
        assert {path.name for path in (checkout / ".data/logs").iterdir()} == {"postgres.log", "postgres.log.old"}

    def test_what_the_environment_sets_over_the_file(self, todo: Todo, checkout: Path) -> None:
        (checkout / ".env").write_text("AUTH_MODE=none\nAUTH_ISSUER=a\n")
        done = todo("up", AUTH_MODE="jwt", AUTH_JWT_SECRET=SECRET * 3)
        assert done.returncode == os.EX_CONFIG
        assert "environment: AUTH_MODE=jwt needs AUTH_AUDIENCE.\n" in done.stderr
        assert SECRET not in done.stderr

    def test_of_another_command(self, todo: Todo, checkout: Path) -> None:
        (checkout / ".env").write_text("\nLLM_PROVIDER=openai\n")
        done = todo("models", OLLAMA_HOST=f"127.0.0.1:{find_free_port()}")
        assert done.returncode == os.EX_CONFIG
        assert f"  {checkout}/.env:2: LLM_PROVIDER=openai needs OPENAI_API_KEY or LLM_API_KEY.\n" in done.stderr
        (checkout / ".env").write_text(f"LLM_BASE_URL=me:{SECRET}@model.example/v1\n")
        done = todo("models", OLLAMA_HOST=f"127.0.0.1:{find_free_port()}")
        assert done.returncode == os.EX_CONFIG
        assert f"  {checkout}/.env:1: LLM_BASE_URL must be an address, " in done.stderr
        assert SECRET not in done.stderr

    @pytest.mark.parametrize(
        ("command", "address"),
        [
            (("migrate",), "mysql://me:{}@db.example/todo"),
            (("backup", "/nowhere/backup.zip"), "mysql://me:{}@db.example/todo"),
            (("usage",), "postgresql://me:{}@[::1/todo"),
        ],
    )
    def test_database_of_a_command(self, todo: Todo, checkout: Path, command: tuple[str, ...], address: str) -> None:
        (checkout / ".env").write_text(f"DATABASE_URL={address.format(SECRET)}\n")
        done = todo(*command)
        assert (done.returncode, done.stdout) == (os.EX_CONFIG, "")
        _, sentence = done.stderr.splitlines()
        assert sentence.startswith(f"  {checkout}/.env:1: DATABASE_URL must be the address of a PostgreSQL database")
        assert SECRET not in done.stderr

    def test_model_of_an_evaluation(self, todo: Todo, checkout: Path) -> None:
        (checkout / ".env").write_text("LLM_TEMPERATURE=9\nHISTORY_TOKENS=1\n")
        done = todo("eval", "--quick", LLM_PROVIDER="openai")
        assert (done.returncode, done.stdout) == (os.EX_CONFIG, "")
        assert f"{checkout}/.env:1: LLM_TEMPERATURE must be " in done.stderr
        assert f"{checkout}/.env:2: HISTORY_TOKENS must be " in done.stderr


@pytest.mark.long
def test_password_in_the_address_of_a_model(todo: Todo, checkout: Path) -> None:
    (checkout / ".env").write_text(f"LLM_PROVIDER=custom\nLLM_BASE_URL=http://me:{SECRET}@127.0.0.1:9/v1\nLLM_MODEL=m")
    for command in (("models",), ("models", "--check")):
        done = todo(*command, OLLAMA_HOST=f"127.0.0.1:{find_free_port()}")
        assert done.returncode == 1
        assert SECRET not in done.stdout + done.stderr


@pytest.mark.long
def test_programs_where_initdb_does_not_work(todo: Todo, shared_dir: Path) -> None:
    """It writes the path of its program into commands of a shell."""
    programs = shared_dir / "in $HOME"
    programs.mkdir(mode=0o755)
    for name in ("initdb", "postgres"):
        (programs / name).write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 18.0'\n")
        (programs / name).chmod(0o755)
    done = todo("up", "--data-dir", str(shared_dir / "data"), PG_BIN=str(programs), LLM_PROVIDER="offline")
    assert (done.returncode, done.stdout) == (1, "")
    [sentence] = done.stderr.splitlines()
    assert str(programs) in sentence
    assert not (shared_dir / "data").exists()
