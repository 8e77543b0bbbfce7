"""What the page says stands in one file, so that others can put it into their language."""

import re
from collections.abc import Iterator, Set
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.web.syntax import Node, nodes, trees

pytestmark = pytest.mark.long

WEB = ROOT / "web"
GRAMMAR = WEB / "tasks" / "language"  # the words that the list understands, and writes as it reads them
LETTERS = re.compile(r"[^\W\d_]{2}")
WORDS = re.compile(r"[^\W\d_][,.;:]? [^\W\d_]|^\s*[A-Z][a-z]+[.:…]?\s*$")
"""Two words, or one that begins with a capital letter; of small ones nobody can tell whether they are seen."""
NAMED = re.compile(r"""(?:aria-label|title|placeholder|alt)=["']?[^"'\0]*[^\W\d_]""")
# Selectors, and what a developer did wrong.
UNSEEN_CALLS = {"includes", "querySelector", "querySelectorAll", "closest", "matches", "focus", "matchMedia", "Error"}
UNSEEN = {"BinaryExpression", "SwitchCase", "ImportDeclaration", "AssignmentExpression"}  # names of others' things
SCHEME = "Bearer "


def spoken(tree: Node, names: Set[str] = frozenset()) -> list[str]:
    """The texts of a module that a person may see or hear; `names` are those of components."""
    return [text for text in _texts(tree) if text not in names and text != SCHEME]


def _texts(tree: Node) -> Iterator[str]:
    for node, above in nodes(tree):
        parent = above[-1] if above else {}
        if node["type"] == "TemplateLiteral":
            parts = "\0".join(quasi["value"]["cooked"] for quasi in node["quasis"])
            if parent["type"] == "TaggedTemplateExpression":
                yield from NAMED.findall(parts)
                yield from filter(LETTERS.search, re.sub(r"<[^>]*>|\0", "\n", parts).split("\n"))
            elif not _unseen(parent):
                yield from filter(WORDS.search, parts.split("\0"))
        elif node["type"] == "Literal" and isinstance(node["value"], str) and not _unseen(parent):
            yield from filter(WORDS.search, [node["value"]])


def _unseen(parent: Node) -> bool:
    callee = parent.get("callee", {})
    called = (callee.get("property") or callee).get("name")
    is_name = parent["type"] == "Property" and parent["key"].get("name") in ("className", "type")
    return parent["type"] in UNSEEN or called in UNSEEN_CALLS or is_name


@pytest.fixture(scope="module")
def modules(node_modules: Path) -> dict[str, Node]:
    left_out = {WEB / "vendor", GRAMMAR}
    paths = [path for path in sorted(WEB.rglob("*.js")) if left_out.isdisjoint(path.parents)]
    return trees(node_modules, {str(path.relative_to(WEB)): path.read_text() for path in paths})


def test_no_other_module_has_a_text_of_its_own(modules: dict[str, Node]) -> None:
    drawn = {
        node["test"]["value"] for node, _ in nodes(modules["chat/widgets.js"]) if (node.get("test") or {}).get("value")
    }
    assert len(spoken(modules.pop("texts.js"))) > 200
    assert {name: texts for name, tree in modules.items() if (texts := spoken(tree, drawn))} == {}


def test_the_page_itself_has_its_name_and_what_is_said_without_scripts() -> None:
    text = re.sub(r"<[^>]*>", "\n", (WEB / "index.html").read_text())
    assert {line.strip() for line in text.split("\n")} - {""} == {"To-do assistant", "This page needs JavaScript."}


@pytest.mark.parametrize(
    ("line", "texts"),
    [
        ("html`<p>${x} Not seen yet</p>`", [" Not seen yet"]),
        ('html`<a aria-label="Close" class="text button">${x}</a>`', ['aria-label="Close']),
        ("html`<input placeholder=${x} title='${y} done'>`", []),
        ("say(`${x} tasks are done`)", [" tasks are done"]),
        ("say(x ? 'Overdue' : 'no date')", ["Overdue", "no date"]),
        ("this.focus('nav button'); if (key === 'Escape') throw new Error('Call it first.')", []),
    ],
)
def test_what_counts_as_a_text(node_modules: Path, line: str, texts: list[str]) -> None:
    (tree,) = trees(node_modules, {"line": f"class Any {{ any() {{ {line} }} }}"}).values()
    assert spoken(tree) == texts
