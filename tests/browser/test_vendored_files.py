"""The vendored libraries are those of their npm packages, as web/vendor/README.md says."""

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.long

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
