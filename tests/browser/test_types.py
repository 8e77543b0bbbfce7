"""What the product gives to ChatKit's widget, checked by the TypeScript compiler against ChatKit's own types."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.scripted_model import ScriptedModel
from tests.support.script import call, calls, says
from tests.support.users import User

pytestmark = pytest.mark.long

HERE = Path(__file__).resolve().parent
WEB = ROOT / "web"
PROJECTS = ("tsconfig.json", "tsconfig.worker.json")
PYTHON_ONLY = ("handler", "loadingBehavior", "streaming")  # keys of an action that the TypeScript types do not name


@pytest.fixture
def workspace(node_modules: Path, tmp_path: Path) -> Path:
    """A copy of the page's sources beside the locked packages; changing it changes nothing here."""
    shutil.copytree(WEB, tmp_path / "web")
    checks = tmp_path / "tests" / "browser"
    checks.mkdir(parents=True)
    for project in PROJECTS:
        shutil.copy(HERE / project, checks)
    (checks / "node_modules").symlink_to(node_modules)
    return tmp_path


def compiled(workspace: Path, *arguments: str) -> str:
    """What the compiler reports; nothing if it accepts everything."""
    folder = workspace / "tests" / "browser"
    program = folder / "node_modules" / ".bin" / "tsc"
    done = subprocess.run([str(program), *arguments], cwd=folder, capture_output=True, text=True, timeout=120)
    assert "--listFilesOnly" in arguments or (done.returncode == 0) == (done.stdout == "")
    return done.stdout + done.stderr


def test_types_of_the_page_and_its_options(workspace: Path) -> None:
    assert compiled(workspace, "--project", "tsconfig.json") == ""
    options = workspace / "web" / "options.js"
    options.write_text(options.read_text().replace('radius: "round"', 'radius: "rounded"'))
    assert "rounded" in compiled(workspace, "--project", "tsconfig.json")


def test_types_of_the_service_worker(workspace: Path) -> None:
    assert compiled(workspace, "--project", "tsconfig.worker.json") == ""
    worker = workspace / "web" / "service-worker.js"
    worker.write_text(worker.read_text().replace("event.waitUntil(install())", "event.waitFor(document)"))
    problems = compiled(workspace, "--project", "tsconfig.worker.json")
    assert "waitFor" in problems
    assert "document" in problems


def test_every_script_of_the_page_is_checked(workspace: Path) -> None:
    checked = {
        Path(line)
        for project in PROJECTS
        for line in compiled(workspace, "--listFilesOnly", "-p", project).splitlines()
    }
    scripts = [path for path in (workspace / "web").rglob("*.js") if "vendor" not in path.parts]
    assert [path for path in scripts if path not in checked] == []
    assert [path for path in scripts if not path.read_text().startswith("// @ts-check\n")] == []


@pytest.mark.asyncio(loop_scope="session")
async def test_types_of_all_widgets(workspace: Path, user: User, model: ScriptedModel) -> None:
    titles = [f"task {number}" for number in range(12)]
    await model.script(
        calls(call("add_task", title="Buy milk", description="two litres", due="2026-11-23 15:00", priority="high")),
        calls(call("add_task", title="Water", labels=["home"], repeat="FREQ=WEEKLY;BYDAY=MO", due="2026-11-23")),
        calls(call("complete_task", task_id=2)),
        calls(call("add_task", title=titles[0], also=titles[1:])),
        calls(call("delete_task", task_id=1)),
        calls(call("list_tasks", limit=2)),
        says("There."),
        calls(call("delete_task", task_id=4, also=list(range(5, 16)))),
    )
    first = await user.chatkit.say("everything")
    asking = await user.chatkit.say("delete all", first.thread_id)
    widgets = [item["widget"] for item in [*first.items, *asking.items] if item["type"] == "widget"]
    assert len(widgets) == 8, [widget["type"] for widget in widgets]
    assert "Basic" in [widget["type"] for widget in widgets]
    assert check(workspace, widgets) == ""
    row = {"type": "ListViewItem", "children": [{"type": "Tickbox"}]}
    assert "Tickbox" in check(workspace, [{"type": "ListView", "children": [row]}])


def check(workspace: Path, widgets: list[dict[str, Any]]) -> str:
    lines = ['import type { Widgets } from "@openai/chatkit";']
    lines += [f"({json.dumps(_typed(widget))}) satisfies Widgets.WidgetRoot;" for widget in widgets]
    (workspace / "tests" / "browser" / "widgets.ts").write_text("\n".join(lines))
    config = json.loads((HERE / "tsconfig.json").read_text())
    (workspace / "tests" / "browser" / "widgets.json").write_text(json.dumps(config | {"files": ["widgets.ts"]}))
    return compiled(workspace, "--project", "widgets.json")


def _typed(value: Any) -> Any:
    if isinstance(value, list):
        return [_typed(one) for one in value]
    if isinstance(value, dict):
        return {key: _typed(one) for key, one in value.items() if key not in PYTHON_ONLY}
    return value


VENDOR = ROOT / "web" / "vendor"
PACKAGED = {"marked/marked.esm.js": "marked/lib/marked.esm.js"}


def test_vendored_files_are_their_packages_own(node_modules: Path) -> None:
    for path in sorted(VENDOR.rglob("*.js")):
        name = str(path.relative_to(VENDOR))
        packaged = re.sub(r"\n?//# sourceMappingURL=.*", "", (node_modules / PACKAGED.get(name, name)).read_text())
        ours, _, added = path.read_text().partition("\nexport const lexer=")
        assert packaged.startswith(ours.rstrip()), name
        assert added in ("", "w.lex,Tokenizer=_;\n")
        assert added or packaged.strip() == ours.strip()
