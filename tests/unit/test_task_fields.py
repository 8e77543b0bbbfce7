"""What the tools take as fields of a task is in the HTTP API, in cards, texts and the terminal, and on the page.

Node.js runs the page's table of fields.
"""

import json
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import playwright
import pytest

from backend.api.tasks import schemas
from backend.cards.current_tasks import CurrentTasks
from backend.cards.render import render_cards
from backend.cards.task_lists import render_list_text
from backend.conversations.records import Entry, Record, ToolCall
from cli.chat.rendering import render_tasks
from cli.chat.screen import render_lines
from common.task_words import FIELDS, FieldWords, describe_reminder, select_fields
from mcp_server.tools import create_tools
from tests.conftest import ROOT
from tests.mcp.calls import FULL
from tests.support import cards

Json = dict[str, Any]

NODE = Path(playwright.__file__).parent / "driver" / "node"
NOT_FIELDS = {"task_id", "also", "add_labels", "remove_labels", "status", "undo"}  # arguments of update_task
TASK: Json = {
    **{"id": 1, "title": "milk", "description": "two litres", "status": "pending"},
    **{"due": "2026-11-27", "time": "15:00", "repeat": "FREQ=DAILY", "priority": "high", "labels": ["home", "shop"]},
}
COMPLETE_TASK: Json = TASK | {name: value for name, value in FULL.items() if name not in TASK}
"""With a value of each field, also of those that the exact texts below do not have."""
OF_TOOL: Json = {
    **{"due": {"date": "2026-11-27", "time": "15:00"}, "user_id": "local", "series": 1, "completed_at": None},
}
PAGE: Json = {"next_cursor": None, "total": 1, "now": "2026-11-26T10:00:00+01:00"}
AT = datetime(2026, 11, 26, 9, tzinfo=UTC)
ANSWER = Entry("run_1", "ent_1", "assistant_message", text="There.", complete=True, seq=4, last_seq=5)
UNDERSTOOD: Json = {"repeat": "FREQ=WEEKLY;BYDAY=MO", "due": "2026-11-30", "time": "09:00"}
PRELUDE = """
globalThis.document = { createComment() {}, createTreeWalker() {} };
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
  return [editing.changes(), editing.problem?.text ?? ""];
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


def read_tasks(task: Json) -> list[Record]:
    """Returns the records of an answer that has read this task."""
    details = PAGE | {"tasks": [task]}
    call = ToolCall("run_1", "call_1", 1, "list_tasks", "{}", "done", "key", details=details, created_at=AT)
    return [call, ANSWER]


def test_fields_of_the_http_api() -> None:
    assert list_fields() == {"title", *schemas.OPTIONAL_FIELDS}
    assert list_fields() <= schemas.Task.model_fields.keys()
    assert schemas.Task.from_tool(COMPLETE_TASK | OF_TOOL).model_dump(exclude_none=True) == COMPLETE_TASK


def test_every_field_has_words() -> None:
    assert list_fields() == {"title", "description", "due", *(field.name for field in FIELDS)}


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
async def test_field_in_cards_texts_and_terminal(field: FieldWords) -> None:
    task = {"id": 1, "title": "milk", "status": "pending", "due": None, field.name: COMPLETE_TASK[field.name]}
    words = field.write(task[field.name])
    assert words
    records = read_tasks(task)
    [card] = await render_cards(records, CurrentTasks())
    [line] = render_lines(render_tasks([task], 90), width=90, colour=False)
    shown = [cards.render_lines({"widget": card.root})[1], await render_list_text(records), line]
    assert all(word.casefold() in text.casefold() for word in words for text in shown)


async def test_task_in_cards_and_texts() -> None:
    records = read_tasks(TASK | OF_TOOL)
    [card] = await render_cards(records, CurrentTasks())
    facts = "two litres · Fri 27 Nov 15:00 · High · every day · #home #shop"
    assert cards.render_lines({"widget": card.root}) == ["1 task", f"☐ milk · {facts}"]
    assert card.copy_text == "- [ ] milk (Fri 27 Nov 15:00)"
    facts = "Fri 27 Nov 15:00, high priority, every day, #home, #shop"
    assert await render_list_text(records) == f"- milk ({facts})"


@pytest.mark.parametrize("task", [TASK | OF_TOOL, TASK], ids=["of a tool", "of the HTTP API"])
def test_task_in_the_terminal(task: Json) -> None:
    [line] = render_lines(render_tasks([task], 90), width=90, colour=False)
    assert " ".join(line.split()).startswith("· 1 milk Fri 27 Nov")
    assert line.endswith("high every day #home #s…")


def test_page_has_the_fields_of_the_tools() -> None:
    assert set(evaluate("FIELDS.map(({ name }) => name)")) == list_fields()
    types = (ROOT / "web" / "tasks" / "types.d.ts").read_text()
    [members] = re.findall(r"^export interface Task \{\n(.*?)^\}", types, re.DOTALL | re.MULTILINE)
    assert {*re.findall(r"^  (\w+):", members, re.MULTILINE)} == schemas.Task.model_fields.keys()


def test_row_shows_each_field() -> None:
    rows = evaluate(
        "Object.fromEntries(FIELDS.map(({ name, row }) => [name, textOf(row?.(task, ui))]))", task=COMPLETE_TASK
    )
    unseen = {name for name, text in rows.items() if not text}
    assert unseen == {"title"}, "it is a button above the others"


def test_each_field_is_sent() -> None:
    """A field without a value would be removed."""
    inputs: list[Json] = evaluate("FIELDS.flatMap(({ inputs }) => inputs)")
    others = {"date": "2026-12-01", "time": "09:00"}
    written = {one["name"]: others.get(one.get("type", ""), "another") for one in inputs}
    for one in inputs:
        if "options" in one:
            kept = {"none", COMPLETE_TASK[one["name"]]}
            written[one["name"]] = next(value for value in one["options"] if value not in kept)
    changes, _ = evaluate("edit()", task=COMPLETE_TASK, written=written, understood=UNDERSTOOD)
    assert changes["fields"].keys() == list_fields()
    assert "none" not in changes["fields"].values()


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
        ({"remind": "+0"}, {"remind": 0}, {"remind": 0}),
        ({"remind": "none"}, {"remind": "none"}, {"remind": "none"}),
        ({"remind": "other", "minutes": " 40320 "}, {"remind": 40_320}, {"remind": 40_320}),
    ],
)
def test_edited_field(written: Json, sent: Json, shown: Json) -> None:
    changes, problem = evaluate("edit()", written={"repeat": "every day", **written}, understood=UNDERSTOOD)
    assert (changes, problem) == ({"fields": sent, "as": shown}, "")


@pytest.mark.parametrize(
    "written",
    [
        {"title": "\U0001f60a" * 200},
        {"description": "\U0001f60a" * 4_000},
        {"labels": ", ".join(["@home", "\u200b", *(f"l{n}" for n in range(8)), "\U0001f60a" * 40])},
    ],
)
def test_longest_texts_can_be_saved(written: Json) -> None:
    """Their letters are counted as the server does, which JavaScript takes for two each."""
    changes, problem = evaluate("edit()", written={"repeat": "every day", **written}, understood=UNDERSTOOD)
    assert problem == ""
    assert "labels" not in written or len(changes["fields"]["labels"]) == 10


def test_words_of_reminders_are_the_same_everywhere() -> None:
    words = {
        "none": "no reminder",
        **{0: "reminder when due", 1: "reminder 1 min before", 60: "reminder 1 hour before"},
        **{90: "reminder 90 min before", 120: "reminder 2 hours before", 1440: "reminder 1 day before"},
        40_320: "reminder 28 days before",
    }
    assert [describe_reminder(remind) for remind in words] == [*words.values()]
    expression = f"{json.dumps([*words])}.map((await import(`${{web}}/words.js`)).reminderWords)"
    assert evaluate(expression) == [*words.values()]


def test_reminder_of_a_task_that_is_not_pending_is_not_shown() -> None:
    done = COMPLETE_TASK | {"status": "completed"}
    assert "remind" not in [field.name for field, _ in select_fields(done)]
    assert evaluate("FIELDS.map(({ row }) => textOf(row?.(task, ui))).join()", task=done).count("reminder") == 0


def test_repeat_says_when_it_begins() -> None:
    undated = {**TASK, "due": None, "time": None, "repeat": None}
    changes, _ = evaluate("edit()", task=undated, written={"repeat": "every monday at 9"}, understood=UNDERSTOOD)
    assert changes["fields"] == {"due": "Mon 2026-11-30 09:00", "repeat": UNDERSTOOD["repeat"]}


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ({"title": " "}, "A task needs a title."),
        ({"title": "\u200b"}, "A task needs a title."),
        ({"title": "x" * 201}, "A title can have up to 200 characters."),
        ({"description": "x" * 4_001}, "A description can have up to 4,000 characters."),
        ({"labels": ", ".join(f"l{n}" for n in range(11))}, "A task can have up to 10 labels."),
        ({"labels": f"home, {'x' * 41}"}, "A label can have up to 40 characters."),
        ({"date": "", "repeat": ""}, "Add a date for this time."),
        ({"time": "", "remind": "+10"}, "Add a time for this reminder."),
        *(
            ({"remind": "other", "minutes": minutes}, "Write the minutes as a whole number of up to 40,320.")
            for minutes in ("", "soon", "1.5", "-1", "40321")
        ),
        ({"date": "", "time": ""}, "Add a date for the first time."),
        ({"repeat": "often"}, "I don't recognise that repeat. Try “every Monday” or “every 2 weeks”."),
    ],
)
def test_edited_field_that_cannot_be_saved(written: Json, problem: str) -> None:
    assert evaluate("edit()", written={"repeat": "every day", **written}) == [None, problem]


def test_draft_of_an_older_page() -> None:
    """It lacks an input that the page has now, and has one that is gone."""
    task = {name: value for name, value in TASK.items() if name != "priority"}
    draft = {"task": task, "before": {}, "written": {"title": "oat milk", "color": "blue"}, "view": "today"}
    expression = "(({ written, changed }) => [written.priority, changed])(Editing.restore(draft))"
    assert evaluate(expression, draft=draft) == ["none", True]
    assert evaluate("Editing.restore(draft).changes().fields", draft=draft) == {"title": "oat milk"}
