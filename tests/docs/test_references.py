"""What the documents refer to is there, and what the program refers to is documented."""

import json
import re

import pytest

from backend.model.failures.errors import FAILURES
from tests.conftest import ROOT
from tests.docs.documents import DOCUMENTS

OTHER_SETTINGS = {
    "COMPOSE_FILE",
    "DOMAIN",
    "GATEWAY_MODE",
    "OLLAMA_CONTEXT_LENGTH",
    "OLLAMA_HOST",
    "UPDATE_GOLDEN",
}
"""Read by migrations, Docker, Ollama or tests."""


def anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", [*DOCUMENTS, "CHANGELOG.md", "workspace/README.md"])
def test_links(document: str) -> None:
    path = ROOT / document
    for target in re.findall(r"\]\((?!http)([^)\s]+)\)", path.read_text()):
        name, _, anchor = target.partition("#")
        linked = (path.parent / name).resolve() if name else path
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked.read_text()), target


def test_root_has_short_documents() -> None:
    """The README begins with what a stranger looks for."""
    lines = {name: (ROOT / name).read_text().splitlines() for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md")}
    assert len(lines["README.md"]) < 130
    assert max(len(lines["SECURITY.md"]), len(lines["CONTRIBUTING.md"])) < 25
    first_screen = "\n".join(lines["README.md"][:30])
    assert [
        word for word in ("git clone", "./todo up", "docker compose up", "Windows") if word not in first_screen
    ] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_settings(document: str) -> None:
    services = json.loads((ROOT / "common/setting_names.json").read_text())
    known = OTHER_SETTINGS.union(*services.values())
    text = (ROOT / document).read_text()
    assert {*re.findall(r"(?:^    |`)([A-Z]+_[A-Z_]+)=", text, re.MULTILINE)} <= known


def test_each_error_code_is_explained() -> None:
    text = (ROOT / "docs/troubleshooting.md").read_text()
    assert [code for code in FAILURES if f"`{code}`" not in text] == []


def test_origins_names_what_is_there() -> None:
    """Each file and folder exists, and contains the names that the page says are in it."""
    text = (ROOT / "docs/origins.md").read_text()
    paths = [path for path in re.findall(r"`([^`\s]+)`", text) if re.match(r"[a-z_]+/", path)]
    assert len(paths) > 50
    assert [path for path in paths if not (ROOT / path).exists()] == []
    placed = re.findall(r"((?:`[^`]+`(?:, | and )?)+) in `([^`]+)`", text)
    named = [(name, path) for names, path in placed for name in re.findall(r"`([^`]+)`", names)]
    assert len(named) > 50
    missing = [(name, path) for name, path in named if not _has_name((ROOT / path).read_text(), name)]
    assert missing == []


def _has_name(source: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", source) is not None
