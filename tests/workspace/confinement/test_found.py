"""What commands are confined by is what works, and not what is there."""

import ctypes
import logging
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from common.environment import SettingsInvalid
from tests.workspace.kinds import made, usable
from workspace.commands.detection import UNCONFINED, find_fault, find_sandbox
from workspace.confinement import base
from workspace.confinement.bubblewrap import find_bubblewrap

LANDLOCK_CREATE_RULESET, VERSION = 444, 1  # landlock_create_ruleset(2)


async def test_the_first_that_works_is_found() -> None:
    assert usable(), "install bubblewrap, or use Linux 5.13 or newer"
    found = await find_sandbox()
    assert found
    assert found.name == made(usable()[0]).name


def test_whatever_the_machine_can_do_is_tried_for_ways_out() -> None:
    """Else one of ours that no longer works would only be left out."""
    plain = ["bwrap", "--unshare-all", "--unshare-user", "--disable-userns", "--ro-bind", "/", "/", "true"]
    namespaces = shutil.which("bwrap") and subprocess.run(plain, check=False).returncode == 0
    landlock = ctypes.CDLL(None).syscall(LANDLOCK_CREATE_RULESET, None, 0, VERSION) > 0
    assert usable() == ["bubblewrap"] * bool(namespaces) + ["landlock"] * landlock


async def test_where_nothing_works_nothing_is_found() -> None:
    assert await find_sandbox(kinds={"bubblewrap": lambda _: "not here"}) is None


async def test_what_does_not_confine_is_not_taken() -> None:
    assert await find_fault(UNCONFINED) == "files outside can be read"
    assert await find_sandbox(kinds={"bubblewrap": lambda _: UNCONFINED}) is None


async def test_files_for_a_moment_in_a_directory_that_commands_may_read_are_no_fault_of_a_sandbox() -> None:
    found = await find_sandbox(readable=[tempfile.gettempdir()])
    assert found
    assert found.name == made(usable()[0]).name


async def test_none_is_only_what_was_asked_for() -> None:
    found = await find_sandbox("none")
    assert found
    assert found.name == "none"


async def test_one_that_was_named_and_does_not_work_is_refused() -> None:
    with pytest.raises(
        SettingsInvalid,
        match=r"^WORKSPACE_CONFINEMENT=bubblewrap does not work on this machine \(there is no bwrap\): ",
    ):
        await find_sandbox(
            "bubblewrap", kinds={"landlock": lambda _: UNCONFINED, "bubblewrap": lambda _: "there is no bwrap"}
        )


async def test_a_bubblewrap_that_may_not_make_namespaces_is_told_of_and_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with caplog.at_level(logging.INFO):
        assert await find_sandbox(kinds={"bubblewrap": find_bubblewrap}) is None
    assert "sandbox bubblewrap cannot be used: bwrap: No permissions to create a new namespace" in caplog.text
    monkeypatch.setenv("PATH", "/nowhere")
    assert "install bubblewrap" in str(find_bubblewrap())


@pytest.mark.parametrize("kind", usable())
def test_a_folder_among_the_programs_is_refused(kind: str) -> None:
    with pytest.raises(PermissionError, match="WORKSPACE_DIR"), made(kind).launch(Path("/usr/share/x"), ["true"], None):
        pass


def test_a_checkout_among_the_programs_is_a_problem_and_an_installed_package_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "PROGRAMS", (str(tmp_path),))
    assert base.find_problem(tmp_path / "src") is None
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "pyproject.toml").touch()
    assert base.find_problem(tmp_path / "src") == f"{tmp_path}/src is in a directory that commands may read: move it"
