"""Writes the table of characters that look like nothing: `python -m tests.unicode_table`, which needs Node.js.

Python's `unicodedata` does not have the property; Node.js has it of the Unicode version that it was built with.
"""

import shutil
import subprocess
from itertools import groupby

from tests.conftest import ROOT

TABLE = ROOT / "common" / "default_ignorable.py"
_SCRIPT = """
const found = [];
for (let c = 0; c <= 0x10ffff; c++)
  if (/\\p{Default_Ignorable_Code_Point}/u.test(String.fromCodePoint(c))) found.push(c);
console.log(found.join(" "));
"""


def read_default_ignorable() -> list[int]:
    node = shutil.which("node")
    assert node, "node is needed: install Node.js 20 or newer."
    done = subprocess.run([node, "-e", _SCRIPT], capture_output=True, text=True, check=True, timeout=60)
    return [int(number) for number in done.stdout.split()]


def render_table(characters: list[int]) -> str:
    runs = groupby(enumerate(characters), lambda pair: pair[1] - pair[0])
    ranges = [[number for _, number in run] for _, run in runs]
    lines = "".join(f"    (0x{run[0]:04X}, 0x{run[-1]:04X}),\n" for run in ranges)
    return f'''"""Unicode's property Default_Ignorable_Code_Point, written by `python -m tests.unicode_table`."""

DEFAULT_IGNORABLE = (
{lines})
"""The first and last character of each range."""
'''


if __name__ == "__main__":
    TABLE.write_text(render_table(read_default_ignorable()))
