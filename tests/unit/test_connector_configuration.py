import json
from pathlib import Path
from typing import Any

import pytest

from backend.tools.connectors import configuration, names
from common import child_environment
from common.environment import SettingsInvalid

SECRET = "a-value-that-nobody-sees"
VARIABLES = {"WEB_KEY": SECRET, "LINES": "one\ntwo", "HOME": "/home/ann", "CEREBRAS_API_KEY": "key", "PGPASSWORD": "p"}


def read(folder: Path, servers: Any, top: str = "mcpServers") -> Any:
    file = folder / "mcp.json"
    file.write_text(servers if isinstance(servers, str) else json.dumps({top: servers}))
    return configuration.read_servers(file, VARIABLES)


def test_both_shapes_are_read_and_references_filled_in(tmp_path: Path) -> None:
    servers = {
        "fetch": {"command": "uvx", "args": ["mcp-server-fetch"], "readOnly": True},
        "files": {"command": "${env:HOME}/bin/files", "env": {"KEY": "Bearer ${env:WEB_KEY}"}, "cwd": "."},
        "web": {"type": "http", "url": "https://web.example/mcp", "headers": {"X-Key": "${env:WEB_KEY}"}, "timeout": 5},
        "off": {"command": "x", "env": {"KEY": "${env:NOT_SET}"}, "disabled": True, "tools": ["a"], "agents": []},
    }
    fetch, files, web, off = read(tmp_path, servers)
    assert (fetch.command, fetch.arguments, fetch.agents, fetch.timeout) == (
        "uvx",
        ["mcp-server-fetch"],
        {"researcher"},
        30,
    )
    assert (files.command, files.environment, files.directory) == (
        *("/home/ann/bin/files", {"KEY": f"Bearer {SECRET}"}),
        str(tmp_path),
    )
    assert files.agents == set(), "what may change something is given to nobody unasked"
    assert (web.headers, web.timeout) == ({"X-Key": SECRET}, 5)
    assert off.disabled
    assert not off.allows("b")
    assert [one.name for one in configuration.list_enabled([fetch, files, web, off])] == ["fetch", "files", "web"]
    assert SECRET not in repr((files, web))
    assert files.redacted(f"it is {SECRET}") == "it is ${env:WEB_KEY}"
    assert [one.name for one in read(tmp_path, servers, top="servers")] == ["fetch", "files", "web", "off"]


OK = {"command": "x"}
MISTAKES: list[tuple[Any, str]] = [
    ("{", "is not valid JSON: Expecting property name enclosed in double quotes, in line 1."),
    ("[]", 'must be an object with "mcpServers" or "servers"'),
    ('{"mcpServers": {}, "servers": {}}', '"mcpServers" or "servers"'),
    ('{"mcpServers": []}', '"mcpServers" or "servers"'),
    ({"My_Server": OK}, "the server 'My_Server' needs another name, of 1 to 20 characters from a to z, 0 to 9 and -."),
    ({"a" * 21: OK}, "needs another name"),
    ({"web": "uvx"}, "the server 'web' must be an object."),
    ({"web": {}}, "needs either command (the program to start) or url (an address)."),
    ({"web": {"command": "x", "url": "https://x"}}, "needs either command"),
    ({"web": {**OK, "args": "a b"}}, "is wrong: args must be a list of texts."),
    ({"web": {**OK, "args": [1]}}, "is wrong: args must be a list of texts."),
    ({"web": {**OK, "env": {"PORT": 1}}}, "is wrong: env must be an object of texts."),
    ({"web": {**OK, "readOnly": "yes"}}, "is wrong: readOnly must be true or false."),
    ({"web": {**OK, "readonly": True}}, "has the unknown key 'readonly'. Known keys are command, args,"),
    ({"web": {**OK, "timeout": 0}}, "is wrong: timeout must be a number of seconds from 1 to 600."),
    ({"web": {**OK, "tools": []}}, "is wrong: tools must be a list of allowed tools"),
    ({"web": {**OK, "agents": ["assistant"]}}, "the only agent that may use these tools"),
    ({"web": {**OK, "agents": ["coder"]}}, 'agents must be an empty list or ["researcher"]'),
    ({"web": {**OK, "type": "http"}}, "has the type http, and command, which do not fit together."),
    ({"web": {"url": "https://x", "type": "sse"}}, "is wrong: type must be stdio or http, which is Streamable HTTP."),
    ({"web": {**OK, "headers": {}}}, "has headers, which a program does not have."),
    ({"web": {"url": "https://x", "env": {}}}, "has env, which an address does not have."),
    ({"web": {"url": "web.example"}}, "is wrong: url must be an address, https://…"),
    ({"web": {**OK, "cwd": "/no/such"}}, "cannot be started: its cwd /no/such is not a directory."),
    ({"web": {**OK, "args": ["${env:NOPE}"]}}, "has ${env:NOPE}, and the variable NOPE is not set."),
    ({"web": {**OK, "args": ["${HOME}"]}}, "has ${HOME}: the one reference that is known is ${env:NAME}"),
    ({"web": {**OK, "args": ["${env:HOME"]}}, "has ${env:HOME: the one reference"),
    ({"web": {**OK, "env": {"K": "${env:CEREBRAS_API_KEY}"}}}, "may not have ${env:CEREBRAS_API_KEY}: that is"),
    ({"web": {**OK, "env": {"K": "${env:PGPASSWORD}"}}}, "may not have ${env:PGPASSWORD}"),
    ({"web": {"url": "https://x", "headers": {"K": "${env:LINES}"}}}, "headers contains a line break"),
]  # fmt: skip


@pytest.mark.parametrize(("servers", "sentence"), MISTAKES)
def test_a_mistake_is_one_clear_sentence(tmp_path: Path, servers: Any, sentence: str) -> None:
    with pytest.raises(SettingsInvalid) as raised:
        read(tmp_path, servers)
    assert sentence in str(raised.value)
    assert str(raised.value).startswith(str(tmp_path / "mcp.json"))
    assert "\n" not in str(raised.value)


def test_all_mistakes_are_told_at_once_and_no_value(tmp_path: Path) -> None:
    with pytest.raises(SettingsInvalid) as raised:
        read(
            tmp_path,
            {"one": {"args": 1, "env": 2, "url": "${env:WEB_KEY}"}, "two": {"command": "${env:WEB_KEY}", "x": 1}},
        )
    assert len(str(raised.value).splitlines()) == 4
    assert SECRET not in str(raised.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SettingsInvalid, match=r"^MCP_SERVERS_FILE: .*mcp.json cannot be read: No such file"):
        configuration.read_servers(tmp_path / "mcp.json", {})


def test_no_setting_of_a_service_may_be_named() -> None:
    assert child_environment.is_setting("MCP_TOKEN_SECRET")
    assert child_environment.is_setting("PGPASSWORD"), "what a library reads"
    assert not child_environment.is_setting("GITHUB_TOKEN")
    assert not child_environment.is_setting("HOME"), "what every program has"


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        ("fetch", "mcp_web__fetch"),
        ("get.page", "mcp_web__get_page_1c9b3ffb"),
        ("get_page", "mcp_web__get_page"),
        ("x" * 70, "mcp_web__" + "x" * 46 + "_"),
    ],
)
def test_name(tool: str, expected: str) -> None:
    name = names.get_model_name("web", tool)
    assert name.startswith(expected.rpartition("_")[0])
    assert len(name) <= 64
    assert names.server_of(name) == "web"
    assert names.get_display_name(name).startswith("mcp.web.")


def test_name_of_a_task_tool() -> None:
    assert names.server_of("add_task") is None
    assert names.get_display_name("add_task") == "add_task"
