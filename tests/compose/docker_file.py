"""The instructions of our Dockerfile, carried out in directories instead of layers."""

import os
import re
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from json import loads
from pathlib import Path

from tests.compose.namespaces import POSTGRES, BaseImage
from tests.conftest import ROOT

PROGRAMS = ("bwrap", "git")
"""What the image has from Debian's packages, these containers have from this machine, with all of its /usr."""


@dataclass
class Image:
    """A stage; `root` is its file system without what the base image brings."""

    base: BaseImage
    root: Path
    environment: dict[str, str]
    directory: str = "/"
    user: str = "0:0"
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)


def instructions() -> list[tuple[str, str]]:
    lines = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text()).splitlines()
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines if line and line[0] != "#")]


def build(place: Path, bases: Mapping[str, BaseImage], variables: Mapping[str, str]) -> dict[str, Image]:
    """The stages by name, the last one's is empty; `variables` are what pip needs to know of this machine."""
    stages: dict[str, Image] = {}
    image = None
    for name, rest in instructions():
        if name == "ARG":
            continue
        if name == "FROM":
            source, _, stage = rest.partition(" AS ")
            image = stages[stage] = _begun(place / (stage or "final"), stages.get(source) or bases[source])
            continue
        assert image
        match name:
            case "WORKDIR":
                image.directory = rest
                inside(image, rest).mkdir(parents=True, exist_ok=True)
            case "ENV":
                variable, _, value = rest.partition("=")
                image.environment[variable] = value.replace("$PATH", image.environment["PATH"])
            case "COPY":
                _copy(image, shlex.split(rest), stages)
            case "RUN" if rest.startswith("apt-get"):
                assert all(map(shutil.which, PROGRAMS)), f"this machine has not all of {', '.join(PROGRAMS)}"
            case "RUN":
                image.base.build(image.root, rest, image.directory, {**image.environment, **variables})
            case "USER":
                image.user = POSTGRES if rest == "postgres" else rest
            case "ENTRYPOINT":
                image.entrypoint = loads(rest)
            case "CMD":
                image.command = loads(rest)
            case _:
                raise AssertionError(f"{name} is not known here")
    return stages


def _begun(root: Path, on: BaseImage | Image) -> Image:
    """A stage that stands on a base image, or on an earlier stage."""
    if isinstance(on, Image):
        shutil.copytree(on.root, root, symlinks=True, copy_function=os.link)
        return replace(on, root=root)
    on.prepare(root)
    return Image(on, root, dict(on.environment))


def context(root: Path = ROOT) -> list[Path]:
    """The files that .dockerignore lets through: a list of exceptions to `*`, then names that are never meant."""
    first, *rest = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
    let_through = [root / line[1:] for line in rest if line[0] == "!"]
    never = [line.removeprefix("**/") for line in rest[len(let_through) :]]
    assert [first, *rest[len(let_through) :]] == ["*", *(f"**/{name}" for name in never)]
    found = [path for top in let_through for path in ([top] if top.is_file() else top.rglob("*"))]
    return [
        path
        for path in found
        if path.is_file() and not any(fnmatch(part, name) for part in path.relative_to(root).parts for name in never)
    ]


def inside(image: Image, path: str) -> Path:
    return image.root / Path(image.directory, path).relative_to("/")


def _copy(image: Image, words: list[str], stages: dict[str, Image]) -> None:
    *sources, target = words
    if sources[0].startswith("--from="):
        option, source = sources
        stage = stages[option.removeprefix("--from=")]
        shutil.copytree(
            inside(stage, source), inside(image, target), symlinks=True, dirs_exist_ok=True, copy_function=os.link
        )
        return
    files = context()
    for file in files if sources == ["."] else [ROOT / source for source in sources]:
        assert file in files, f".dockerignore keeps {file} out"
        copy = inside(image, target) / (file.relative_to(ROOT) if sources == ["."] else file.name)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
