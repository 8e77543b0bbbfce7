"""The instructions of our Dockerfile, carried out in directories instead of layers."""

import os
import re
import shlex
import shutil
from dataclasses import dataclass, field
from json import loads
from pathlib import Path

from tests.compose.namespaces import PATH, BaseImage
from tests.conftest import ROOT


@dataclass
class Image:
    """A stage; `root` is its file system without what the base image brings."""

    base: str
    root: Path
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": PATH})
    directory: str = "/"
    user: str = "0:0"
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)


def instructions() -> list[tuple[str, str]]:
    lines = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text()).splitlines()
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines if line and line[0] != "#")]


def build(place: Path, base: BaseImage, variables: dict[str, str]) -> Image:
    """The last stage; `variables` are what pip needs to know of this machine."""
    stages: dict[str, Image] = {}
    image = None
    for name, rest in instructions():
        if name == "ARG":
            continue
        if name == "FROM":
            name_of_base, _, stage = rest.partition(" AS ")
            image = stages[stage] = Image(name_of_base, place / (stage or "final"))
            base.prepare(image.root)
            continue
        assert image
        match name:
            case "WORKDIR":
                image.directory = rest
                _inside(image, rest).mkdir(parents=True, exist_ok=True)
            case "ENV":
                variable, _, value = rest.partition("=")
                image.environment[variable] = value.replace("$PATH", image.environment["PATH"])
            case "COPY":
                _copy(image, shlex.split(rest), stages)
            case "RUN":
                base.build(image.root, rest, image.directory, {**image.environment, **variables})
            case "USER":
                image.user = rest
            case "ENTRYPOINT":
                image.entrypoint = loads(rest)
            case "CMD":
                image.command = loads(rest)
            case _:
                raise AssertionError(f"{name} is not known here")
    assert image
    return image


def context() -> list[Path]:
    """The files that .dockerignore lets through: a list of exceptions to `*`, and what is never meant."""
    first, *rest = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
    assert first == "*"
    let_through = [ROOT / line[1:] for line in rest if line[0] == "!"]
    assert [line for line in rest if line[0] != "!"] == ["**/__pycache__"]
    found = [path for top in let_through for path in ([top] if top.is_file() else top.rglob("*"))]
    return [path for path in found if path.is_file() and "__pycache__" not in path.parts]


def _inside(image: Image, path: str) -> Path:
    return image.root / Path(image.directory, path).relative_to("/")


def _copy(image: Image, words: list[str], stages: dict[str, Image]) -> None:
    *options, source, target = words
    if options:
        (option,) = options
        stage = stages[option.removeprefix("--from=")]
        shutil.copytree(
            _inside(stage, source), _inside(image, target), symlinks=True, dirs_exist_ok=True, copy_function=os.link
        )
        return
    files = context()
    for file in files if source == "." else [ROOT / source]:
        assert file in files, f".dockerignore keeps {source} out"
        copy = _inside(image, target) / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
