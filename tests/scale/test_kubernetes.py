"""The files in `deploy/kubernetes` are what Kubernetes takes, and give the services what these know."""

import copy
from typing import Any

import pytest
from pydantic_settings import BaseSettings

from backend.doors.edge import LOOPBACK
from backend.settings import Settings as BackendSettings
from backend.turn import reports
from mcp_server.settings import Settings as McpSettings
from service.settings import OwnerSettings, ServiceSettings
from tests.scale import kubernetes
from tests.settings import variables
from tests.tokens import MCP_TOKEN_SECRET, OTHER_SECRET
from workspace.settings import Settings as WorkspaceSettings

pytestmark = pytest.mark.long

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
AFTER_DRAINING = {"todo-backend": 30, "todo-mcp": 15, "todo-workspace": 15}


def pod_of(name: str) -> Json:
    kind, _ = SERVICES[name]
    return kubernetes.object_of(kind, name)["spec"]["template"]["spec"]


def container_of(name: str) -> Json:
    [container] = pod_of(name)["containers"]
    return container


def environment_of(name: str) -> dict[str, str]:
    container = container_of(name)
    maps = [kubernetes.object_of("ConfigMap", one["configMapRef"]["name"]) for one in container.get("envFrom", [])]
    given = {key: value for one in maps for key, value in one["data"].items()}
    return given | {one["name"]: one["value"] for one in container["env"]}


@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_takes_all_of_it(version: str) -> None:
    assert len(kubernetes.objects()) > 10
    assert [problem for each in kubernetes.objects() for problem in kubernetes.problems(each, version)] == []


def test_a_field_that_is_none_would_be_found() -> None:
    wrong = copy.deepcopy(kubernetes.object_of("Deployment", "todo-backend"))
    wrong["spec"]["template"]["spec"]["containers"][0]["readinesProbe"] = {}
    assert len(list(kubernetes.problems(wrong, VERSIONS[0]))) == 1


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_accepts_what_it_is_given(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, settings = SERVICES[name]
    known = {*variables(BackendSettings), *variables(McpSettings), *variables(WorkspaceSettings)}
    for variable in (*known, *variables(OwnerSettings)):
        monkeypatch.delenv(variable, raising=False)
    environment = environment_of(name)
    assert environment.keys() <= known
    for variable, value in (SECRETS | environment).items():
        monkeypatch.setenv(variable, value)
    accepted = settings()
    if isinstance(accepted, ServiceSettings):
        assert accepted.problem() is None
        assert accepted.drain_seconds > 0


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_asked_where_and_by_a_name_that_it_serves(name: str) -> None:
    container = container_of(name)
    probes = {probe: container[f"{probe}Probe"]["httpGet"] for probe in ("startup", "liveness", "readiness")}
    assert {probe: asked["path"] for probe, asked in probes.items()} == {
        "startup": "/health",
        "liveness": "/health",
        "readiness": "/ready",
    }
    for asked in probes.values():
        assert [header["value"] for header in asked["httpHeaders"]] == ["localhost"]
    assert "localhost" in LOOPBACK
    _, settings = SERVICES[name]
    [port] = container["ports"]
    fields = {field: info.default for field, info in settings.model_fields.items() if field.endswith("_port")}
    assert port["containerPort"] in fields.values()


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_that_ends_is_given_the_time_it_takes(name: str) -> None:
    drain = float(environment_of(name).get("DRAIN_SECONDS", 0))
    assert pod_of(name)["terminationGracePeriodSeconds"] >= drain + AFTER_DRAINING[name]


def test_what_stands_beside_a_service_means_its_pods() -> None:
    labels = {
        each["spec"]["template"]["metadata"]["labels"]["app"]
        for each in kubernetes.objects()
        if each["kind"] in ("Deployment", "StatefulSet")
    }
    for each in kubernetes.objects():
        match each:
            case {"kind": "Service", "spec": {"selector": {"app": app}}}:
                assert app in labels
            case {"kind": "PodDisruptionBudget", "spec": {"selector": {"matchLabels": {"app": app}}}}:
                assert app in labels
            case {"kind": "HorizontalPodAutoscaler", "spec": {"scaleTargetRef": {"name": name}}}:
                assert name in labels
            case _:
                pass


def test_backends_are_as_many_as_running_turns_need() -> None:
    scaler = kubernetes.object_of("HorizontalPodAutoscaler", "todo-backend")
    named = [metric["pods"]["metric"]["name"] for metric in scaler["spec"]["metrics"] if metric["type"] == "Pods"]
    assert named == [metric.name for metric in reports.RUNNING.collect()]


def test_nothing_runs_as_root_or_may_become_it() -> None:
    for each in kubernetes.objects():
        if each["kind"] not in ("Deployment", "StatefulSet", "Job"):
            continue
        pod = each["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"]
        for container in (*pod.get("initContainers", []), *pod["containers"]):
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert container["securityContext"]["readOnlyRootFilesystem"]
