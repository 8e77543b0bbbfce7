"""The syntax trees of the page's modules, as acorn reads them."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

Node = dict[str, Any]

_READ = """
import { readFileSync } from "node:fs";
const { parse } = await import(process.argv[1]);
const options = { ecmaVersion: "latest", sourceType: "module" };
const sources = JSON.parse(readFileSync(0, "utf8"));
const read = ([name, text]) => [name, parse(text, options)];
console.log(JSON.stringify(Object.fromEntries(Object.entries(sources).map(read))));
"""


def trees(node_modules: Path, sources: Mapping[str, str]) -> dict[str, Node]:
    """The tree of each text, in ESTree's form; a text that is no module is an error."""
    acorn = (node_modules / "acorn" / "dist" / "acorn.mjs").as_uri()
    command = ["node", "--input-type=module", "--eval", _READ, acorn]
    done = subprocess.run(command, input=json.dumps(sources), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def nodes(value: Any, above: tuple[Node, ...] = ()) -> Iterator[tuple[Node, tuple[Node, ...]]]:
    """Each node, with those above it, the nearest last."""
    if isinstance(value, list):
        for one in value:
            yield from nodes(one, above)
    elif isinstance(value, dict):
        if "type" in value:
            yield value, above
            above = (*above, value)
        for one in value.values():
            yield from nodes(one, above)
