"""What the page gives to ChatKit's widget, checked by the TypeScript compiler against ChatKit's own types."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from backend.conversation.rows import as_shown
from backend.tools import edit_form, task_rows, widgets
from backend.tools.consent import card as consent
from backend.tools.task import Task
from tests.conftest import ROOT

pytestmark = pytest.mark.long

HERE = Path(__file__).resolve().parent
WEB = ROOT / "web"
PYTHON_ONLY = ("handler", "loadingBehavior", "streaming")  # keys of an action that the TypeScript types do not name

OPEN = Task(id=1, title="Buy milk", description="two litres", status="pending")
DONE = Task(id=2, title="Call mum", status="completed")
FULL = Task.model_validate(
    {
        "id": 3,
        "title": "Water the plants",
        "status": "completed",
        "due": "Mon 2026-11-23 15:00",
        "priority": "high",
        "labels": ["home"],
        "repeat": "FREQ=WEEKLY;BYDAY=MO",
        "next": {"id": 4, "due": "Mon 2026-11-30"},
    }
)
UNDO = task_rows.undo_button("run_1", [OPEN, DONE])
LIST = widgets.item(widgets.task_list([OPEN, DONE], more=True))
PRODUCED = {
    "empty list": widgets.task_list([], more=False),
    "list": widgets.task_list([OPEN, DONE, FULL], more=False),
    "first page of a list": widgets.task_list([OPEN, DONE], more=True),
    "list of a call": widgets.changed_list([OPEN, DONE, FULL], "3 tasks completed", undo=UNDO),
    "card": widgets.task_card(OPEN, "Added", undo=UNDO),
    "card that is open for changes": task_rows.with_form(widgets.task_card(FULL, "Added"), edit_form.form(FULL)),
    "list that is open for changes": widgets.with_form(LIST, OPEN.id, edit_form.form(OPEN)).root,
    "card with all": widgets.task_card(FULL, "Completed"),
    "card of a completed task": widgets.task_card(DONE, "Changed"),
    "card that asks": consent.card("apr_1", "Delete 2 tasks\n“Buy milk” (1)\n“Call mum” (2)"),
    "card that was answered": consent.card("apr_1", "Delete task 1\n“Buy milk” (1)", "refused", "not yet"),
}


@pytest.fixture
def workspace(node_modules: Path, tmp_path: Path) -> Path:
    """A copy of the page's sources beside the locked packages; changing it changes nothing here."""
    shutil.copytree(WEB, tmp_path / "web")
    checks = tmp_path / "tests" / "web"
    checks.mkdir(parents=True)
    shutil.copy(HERE / "tsconfig.json", checks)
    (checks / "node_modules").symlink_to(node_modules)
    return tmp_path


def compiled(workspace: Path, *arguments: str) -> str:
    """What the compiler has to say; nothing when it is content."""
    program = workspace / "tests" / "web" / "node_modules" / ".bin" / "tsc"
    done = subprocess.run(
        [str(program), *arguments], cwd=workspace / "tests" / "web", capture_output=True, text=True, timeout=120
    )
    assert (done.returncode == 0) == (done.stdout == "")
    return done.stdout + done.stderr


def test_the_page_and_its_options_have_the_right_types(workspace: Path) -> None:
    assert compiled(workspace, "--project", "tsconfig.json") == ""
    options = workspace / "web" / "options.js"
    options.write_text(options.read_text().replace('radius: "round"', 'radius: "rounded"'))
    assert "rounded" in compiled(workspace, "--project", "tsconfig.json")


def test_every_widget_the_server_produces_is_one_of_chatkit_s(workspace: Path) -> None:
    assert check(workspace, PRODUCED) == ""
    row = {"type": "ListViewItem", "children": [{"type": "Tickbox"}]}
    assert "Tickbox" in check(workspace, {"wrong": {"type": "ListView", "children": [row]}})


def check(workspace: Path, produced: dict[str, Any]) -> str:
    lines = ['import type { Widgets } from "@openai/chatkit";']
    for name, widget in produced.items():
        lines.append(f"({json.dumps(_typed(sent(widget)))}) satisfies Widgets.WidgetRoot; // {name}")
    (workspace / "tests" / "web" / "widgets.ts").write_text("\n".join(lines))
    config = json.loads((HERE / "tsconfig.json").read_text())
    (workspace / "tests" / "web" / "widgets.json").write_text(json.dumps(config | {"files": ["widgets.ts"]}))
    return compiled(workspace, "--project", "widgets.json")


def sent(widget: dict[str, Any]) -> Any:
    """The widget as it leaves the server."""
    try:
        shown = as_shown("thr_1", widgets.item(widget))
        return json.loads(shown.model_dump_json(by_alias=True, exclude_none=True))["widget"]
    except ValidationError:
        return widget


def _typed(value: Any) -> Any:
    if isinstance(value, list):
        return [_typed(one) for one in value]
    if isinstance(value, dict):
        return {key: _typed(one) for key, one in value.items() if key not in PYTHON_ONLY}
    return value
