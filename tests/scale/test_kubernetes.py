"""The files in `deploy/kubernetes` are valid, and their settings are those of the services."""

from typing import Any

import pytest
from pydantic_settings import BaseSettings

from backend.settings import BackendSettings
from common.server.edge import LOOPBACK
from common.settings import OwnerSettings, ServiceSettings
from mcp_server.settings import McpSettings
from tests.scale import kubernetes
from tests.settings import variables
from tests.tokens import MCP_TOKEN_SECRET, OTHER_SECRET
from workspace.settings import Settings as WorkspaceSettings

VERSIONS = ("1.33.0", "1.37.0")
Json = dict[str, Any]
SERVICES: dict[str, tuple[str, type[BaseSettings]]] = {
    "todo-backend": ("Deployment", BackendSettings),
    "todo-mcp": ("Deployment", McpSettings),
    "todo-workspace": ("StatefulSet", WorkspaceSettings),
}
SECRETS = {
    "DATABASE_URL": "postgresql://todo_service@10.0.0.30/todo",
    "LISTEN_DATABASE_URL": "postgresql://todo_service@10.0.0.31/todo",
    "MCP_TOKEN_SECRET": MCP_TOKEN_SECRET,
    "WORKSPACE_TOKEN_SECRET": OTHER_SECRET,
}


def get_pod(name: str) -> Json:
    kind, _ = SERVICES[name]
    return kubernetes.get_object(kind, name)["spec"]["template"]["spec"]


def get_container(name: str) -> Json:
    [container] = get_pod(name)["containers"]
    return container


def get_environment(name: str) -> dict[str, str]:
    container = get_container(name)
    maps = [kubernetes.get_object("ConfigMap", one["configMapRef"]["name"]) for one in container.get("envFrom", [])]
    shared = {key: value for one in maps for key, value in one["data"].items()}
    return shared | {one["name"]: one["value"] for one in container["env"]}


@pytest.mark.extended
@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_is_valid(version: str) -> None:
    assert len(kubernetes.objects()) > 10
    assert [problem for each in kubernetes.objects() for problem in kubernetes.find_problems(each, version)] == []


@pytest.mark.parametrize("name", SERVICES)
def test_service_accepts_its_settings(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, settings = SERVICES[name]
    known = {*variables(BackendSettings, McpSettings, WorkspaceSettings)}
    for variable in (*known, *variables(OwnerSettings)):
        monkeypatch.delenv(variable, raising=False)
    environment = get_environment(name)
    assert environment.keys() <= known
    for variable, value in (SECRETS | environment).items():
        monkeypatch.setenv(variable, value)
    accepted = settings()
    if isinstance(accepted, ServiceSettings):
        assert accepted.drain_seconds > 0


@pytest.mark.parametrize("name", SERVICES)
def test_probes_use_paths_and_hosts_of_the_service(name: str) -> None:
    container = get_container(name)
    probes = {probe: container[f"{probe}Probe"]["httpGet"] for probe in ("startup", "liveness", "readiness")}
    assert {probe: request["path"] for probe, request in probes.items()} == {
        "startup": "/health",
        "liveness": "/health",
        "readiness": "/ready",
    }
    for request in probes.values():
        assert [header["value"] for header in request["httpHeaders"]] == ["localhost"]
    assert "localhost" in LOOPBACK
    _, settings = SERVICES[name]
    [port] = container["ports"]
    fields = {field: info.default for field, info in settings.model_fields.items() if field.endswith("_port")}
    assert port["containerPort"] in fields.values()


def test_nothing_runs_as_root() -> None:
    for each in kubernetes.objects():
        if each["kind"] not in ("Deployment", "StatefulSet", "Job"):
            continue
        pod = each["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"]
        for container in (*pod.get("initContainers", []), *pod["containers"]):
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert container["securityContext"]["readOnlyRootFilesystem"]
