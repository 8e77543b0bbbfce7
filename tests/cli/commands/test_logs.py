import subprocess

import pytest


@pytest.fixture
def logs(start, tmp_path):
    (tmp_path / "logs").mkdir()

    def run(*arguments: str) -> subprocess.Popen[str]:
        return start("-m", "cli", "logs", *arguments, "--data-dir", str(tmp_path))

    return run


def test_the_end_of_each_log_is_shown_with_its_name(logs, tmp_path):
    (tmp_path / "logs/backend.log").write_text("".join(f"line {number}\n" for number in range(100)))
    (tmp_path / "logs/postgres.log").write_text("ready\n")
    output, _ = logs().communicate(timeout=20)
    lines = output.splitlines()
    assert len(lines) == 21
    assert (lines[0].split(), lines[-1].split()) == (["backend", "|", "line", "80"], ["postgres", "|", "ready"])
    assert logs("postgres").communicate(timeout=20)[0] == "ready\n"


def test_what_is_added_is_followed_into_the_next_run(logs, tmp_path):
    log = tmp_path / "logs/backend.log"
    log.write_text("first\n")
    following = logs("backend", "--follow")
    assert following.stdout.readline() == "first\n"
    with log.open("a") as file:
        file.write("second\n")
    assert following.stdout.readline() == "second\n"
    log.replace(tmp_path / "logs/backend.log.old")
    log.write_text("third\n")
    assert following.stdout.readline() == "third\n"
    following.send_signal(2)
    assert following.wait(20) == 130


def test_without_a_log_one_sentence_says_so(logs, tmp_path):
    output, _ = logs("backend").communicate(timeout=20)
    assert output == f"error: There is no log of backend in {tmp_path}/logs: ./todo up writes them.\n"
