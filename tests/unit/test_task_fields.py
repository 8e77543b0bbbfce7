"""The fields of a task on the page: its table, which Node.js runs here, is compared with what the tools take."""

import json
import subprocess
from pathlib import Path
from typing import Any

import playwright
import pytest

from mcp_server.tools import create_tools
from tests.conftest import ROOT

Json = dict[str, Any]

NODE = Path(playwright.__file__).parent / "driver" / "node"
NOT_FIELDS = {"task_id", "also", "add_labels", "remove_labels", "status", "undo"}  # arguments of update_task
TASK: Json = {
    **{"id": 1, "title": "milk", "description": "two litres", "status": "pending"},
    **{"due": "2026-11-27", "time": "15:00", "repeat": "FREQ=DAILY", "priority": "high", "labels": ["home"]},
}
UNDERSTOOD: Json = {"repeat": "FREQ=WEEKLY;BYDAY=MO", "due": "2026-11-30", "time": "09:00"}
PRELUDE = """
globalThis.document = { createComment() {}, createTreeWalker() {} };
globalThis.sessionStorage = { getItem: () => draft };
const { FIELDS } = await import(`${web}/tasks/fields.js`);
const { Editing } = await import(`${web}/tasks/editing.js`);
const ui = { view: "all", today: "2026-11-26", clock: { now: { day: "2026-11-26", time: "10:00" } } };
const textOf = (part) => {
  if (Array.isArray(part)) return part.map(textOf).join("");
  if (part?.strings) return part.strings.map((text, at) => text + textOf(part.values[at])).join("");
  return ["string", "number"].includes(typeof part) ? String(part) : "";
};
const edit = () => {
  const editing = new Editing(task);
  editing.readRepeat(written.repeat, understood);
  Object.assign(editing.written, written);
  return [editing.changes(), editing.problem];
};
"""


def evaluate(expression: str, **values: Any) -> Any:
    """Evaluates an expression that uses the page's modules and these values."""
    defaults = {"web": str(ROOT / "web"), "task": TASK, "written": {}, "understood": None, "draft": None}
    named = [f"const {name} = {json.dumps(value)};" for name, value in (defaults | values).items()]
    program = "\n".join([*named, PRELUDE, f"console.log(JSON.stringify({expression}));"])
    command = [NODE, "--input-type=module", "--eval", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def list_fields() -> set[str]:
    """Returns the names of the fields that the tools change."""
    [update] = [tool for tool in create_tools(with_user_id=False) if tool.name == "update_task"]
    return set(update.parameters["properties"]) - NOT_FIELDS


def test_page_has_the_fields_of_the_tools() -> None:
    assert set(evaluate("FIELDS.map(({ name }) => name)")) == list_fields()


def test_row_shows_each_field() -> None:
    rows = evaluate("Object.fromEntries(FIELDS.map(({ name, row }) => [name, textOf(row?.(task, ui))]))")
    unseen = {name for name, text in rows.items() if not text}
    assert unseen == {"title"}, "it is a button above the others"


@pytest.mark.parametrize(
    ("written", "sent", "shown"),
    [
        ({}, {}, {}),
        ({"title": " oat  milk "}, {"title": "oat milk"}, {"title": "oat milk"}),
        ({"description": ""}, {"description": ""}, {"description": ""}),
        ({"date": "2026-11-28"}, {"due": "Sat 2026-11-28 15:00"}, {"due": "2026-11-28", "time": "15:00"}),
        ({"time": ""}, {"due": "Fri 2026-11-27 all day"}, {"due": "2026-11-27", "time": None}),
        (
            {"date": "", "time": "", "repeat": ""},
            {"due": "none", "repeat": "none"},
            {"due": None, "time": None, "repeat": None},
        ),
        ({"repeat": "every monday"}, {"repeat": UNDERSTOOD["repeat"]}, {"repeat": UNDERSTOOD["repeat"]}),
        ({"priority": "low"}, {"priority": "low"}, {"priority": "low"}),
        ({"priority": "none"}, {"priority": "none"}, {"priority": None}),
        ({"labels": "#shop, home,shop"}, {"labels": ["shop", "home"]}, {"labels": ["shop", "home"]}),
        ({"labels": ""}, {"labels": []}, {"labels": []}),
    ],
)
def test_edited_field(written: Json, sent: Json, shown: Json) -> None:
    changes, problem = evaluate("edit()", written={"repeat": "every day", **written}, understood=UNDERSTOOD)
    assert (changes, problem) == ({"fields": sent, "as": shown}, "")


def test_repeat_says_when_it_begins() -> None:
    undated = {**TASK, "due": None, "time": None, "repeat": None}
    changes, _ = evaluate("edit()", task=undated, written={"repeat": "every monday at 9"}, understood=UNDERSTOOD)
    assert changes["fields"] == {"due": "Mon 2026-11-30 09:00", "repeat": UNDERSTOOD["repeat"]}


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ({"title": " "}, "A task needs a title."),
        ({"title": "x" * 201}, "A title can have up to 200 characters."),
        ({"date": "", "repeat": ""}, "Add a date for this time."),
        ({"date": "", "time": ""}, "Add a date for the first time."),
        ({"repeat": "often"}, "I don't recognise that repeat. Try “every Monday” or “every 2 weeks”."),
    ],
)
def test_edited_field_that_cannot_be_saved(written: Json, problem: str) -> None:
    assert evaluate("edit()", written={"repeat": "every day", **written}) == [None, problem]


def test_draft_of_an_older_page() -> None:
    """It lacks an input that the page has now, and has one that is gone."""
    task = {name: value for name, value in TASK.items() if name != "priority"}
    draft = json.dumps({"task": task, "written": {"title": "oat milk", "color": "blue"}})
    expression = "(({ written, changed }) => [written.priority, changed])(Editing.restored())"
    assert evaluate(expression, draft=draft) == ["none", True]
    assert evaluate("Editing.restored().changes().fields", draft=draft) == {"title": "oat milk"}
