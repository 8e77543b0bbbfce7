"""The page's files mean the same as they are sent and as they are written; the vendored ones are their packages'."""

import re
from pathlib import Path
from typing import Any

import pytest

from backend.doors import page
from tests.web.conftest import OpenPage
from tests.web.syntax import nodes, trees

pytestmark = pytest.mark.long

OURS = sorted(path for path in page.WEB.rglob("*.js") if page.VENDOR not in path.parents)
PACKAGED = {"marked/marked.esm.js": "marked/lib/marked.esm.js"}
RULES = """([one, other]) => [one, other].map((text) => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(text);
    return [...sheet.cssRules].map(({ cssText }) => cssText).join("\\n");
})"""


def meaning(value: Any) -> Any:
    """The tree without its places in the text; how the lines of a template are indented is seen by nobody."""
    if isinstance(value, list):
        return [meaning(one) for one in value]
    if not isinstance(value, dict):
        return value
    if value.get("type") == "TemplateElement":
        return re.sub(r"\n[ \t]+", "\n", value["value"]["raw"])
    return {key: meaning(one) for key, one in value.items() if key not in ("start", "end")}


def test_a_module_is_sent_without_its_comments_and_nothing_else_is_missing(node_modules: Path) -> None:
    written = trees(node_modules, {str(path): path.read_text() for path in OURS})
    sent = trees(node_modules, {str(path): page.as_sent(path) for path in OURS})
    for path in OURS:
        assert meaning(sent[str(path)]) == meaning(written[str(path)]), path
        assert page.as_sent(path).count("\n") == path.read_text().count("\n"), "an error names the line that it is in"
        assert not re.search(r"@(type|param|import)", page.as_sent(path))
        for node, above in nodes(written[str(path)]):
            indented = node["type"] == "TemplateElement" and re.search(r"\n[ \t]", node["value"]["raw"])
            assert not indented or above[-2]["type"] == "TaggedTemplateExpression", (
                "the indentation is part of this text"
            )


def test_what_is_missing_is_noticed(node_modules: Path) -> None:
    lines = {"written": 'const a = ["x // y", `b /** c */`];', "sent": 'const a = ["x'}
    with pytest.raises(AssertionError, match="Unterminated"):
        trees(node_modules, lines)
    lines["sent"] = 'const a = ["x // y", `b`];'
    written, sent = (meaning(tree) for tree in trees(node_modules, lines).values())
    assert written != sent


@pytest.mark.asyncio(loop_scope="session")
async def test_a_style_sheet_is_sent_with_the_same_rules(open_page: OpenPage) -> None:
    shown = await open_page()
    for path in page.WEB.glob("*.css"):
        written, sent = await shown.evaluate(RULES, [path.read_text(), page.as_sent(path)])
        assert sent == written
        assert len(sent) > 5000
        assert "/*" not in page.as_sent(path)


def test_vendored_files_are_their_packages_own(node_modules: Path) -> None:
    for path in sorted(page.VENDOR.rglob("*.js")):
        name = str(path.relative_to(page.VENDOR))
        packaged = re.sub(r"\n?//# sourceMappingURL=.*", "", (node_modules / PACKAGED.get(name, name)).read_text())
        ours, _, added = path.read_text().partition("\nexport const lexer=")
        assert packaged.startswith(ours.rstrip()), name
        assert added in ("", "w.lex;\n")
        assert added or packaged.strip() == ours.strip()
