"""The page understands the same sentences as the offline model does: both are held to `tests/sentences.json`."""

import json
import shutil
import subprocess
from typing import Any

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.long

SENTENCES = ROOT / "tests" / "sentences.json"
READ = """
    import { readFileSync } from "node:fs";
    const { sentenceOf } = await import(process.argv[1]);
    const { now, sentences } = JSON.parse(readFileSync(process.argv[2]));
    const [day, time] = now.split("T");
    console.log(JSON.stringify(sentences.map(({ say }) => sentenceOf(say, { day, time }))));
"""


def understood(sentence: dict[str, Any]) -> dict[str, Any]:
    """What is said, in the form of the table, without what says nothing."""
    when = sentence["when"] or {"day": None, "time": None, "repeat": None}
    due = " ".join(part for part in (when["day"], when["time"]) if part)
    told = {name: sentence[name] for name in ("title", "labels", "priority")} | {"due": due, "repeat": when["repeat"]}
    return {name: value for name, value in told.items() if value}


def test_the_page_understands_the_table() -> None:
    node = shutil.which("node")
    assert node, "node is needed: install Node.js 20 or newer."
    module = (ROOT / "web" / "tasks" / "language" / "sentence.js").as_uri()
    command = [node, "--input-type=module", "--no-warnings", "--eval", READ, module, str(SENTENCES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    table = json.loads(SENTENCES.read_text())["sentences"]
    found = [{"say": one["say"], **understood(read)} for one, read in zip(table, json.loads(done.stdout), strict=True)]
    assert [one for one in found if one not in table] == []
