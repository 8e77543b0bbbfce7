import pytest

from cli.services import environment


def test_the_environment_wins_over_the_file_and_what_is_empty_counts_as_none(tmp_path, monkeypatch):
    (tmp_path / ".env").write_text(
        "# a comment\nLLM_MODEL=from-file\nLLM_PROVIDER='ollama'\nLLM_API_KEY=\nLLM_BASE_URL=x\n"
    )
    monkeypatch.setenv("LLM_MODEL", "from-environment")
    monkeypatch.setenv("LLM_BASE_URL", "")
    monkeypatch.delenv("LLM_PROVIDER", raising=False)
    monkeypatch.delenv("LLM_API_KEY", raising=False)
    values = environment.load(tmp_path / ".env")
    assert values["LLM_MODEL"] == "from-environment"
    assert values["LLM_PROVIDER"] == "ollama"
    assert not {"LLM_API_KEY", "LLM_BASE_URL"} & values.keys()


@pytest.mark.parametrize(
    ("variables", "needed"),
    [
        ({}, True),
        ({"LLM_PROVIDER": "offline"}, True),
        ({"LLM_PROVIDER": "offline", "CEREBRAS_API_KEY": "k"}, True),
        ({"LLM_PROVIDER": "offline", "LLM_BASE_URL": "http://elsewhere/v1"}, False),
        ({"LLM_PROVIDER": "ollama"}, False),
        ({"CEREBRAS_API_KEY": "k"}, False),
        ({"LLM_API_KEY": "k"}, False),
        ({"OPENAI_API_KEY": "k"}, True),
    ],
)
def test_the_offline_model_runs_only_when_nobody_else_could_answer(variables, needed):
    assert environment.needs_offline_model(variables) is needed


def test_what_mcp_json_names_is_given_to_other_servers_but_no_setting(tmp_path, monkeypatch, capsys):
    file = tmp_path / "mcp.json"
    file.write_text('{"mcpServers": {"web": {"args": ["${env:WEB_KEY}", "${env:DATABASE_URL}", "${env:NOT_SET}"]}}}')
    (tmp_path / ".env").write_text("WEB_KEY=k\nWEB_KEX=k\n")
    monkeypatch.setattr(environment, "SERVERS", file)
    for name in ("MCP_SERVERS_FILE", "WEB_KEY"):
        monkeypatch.delenv(name, raising=False)
    values = environment.load(tmp_path / ".env")
    assert values["MCP_SERVERS_FILE"] == str(file), "beside .env it needs no setting"
    told = capsys.readouterr()
    assert "WEB_KEX is no setting" in told.out + told.err
    assert "WEB_KEY" not in told.out + told.err
    values["DATABASE_URL"] = "postgresql://secret@host/name"
    assert environment.named_by_servers(values) == {"WEB_KEY": "k"}
    assert environment.named_by_servers({"MCP_SERVERS_FILE": "/no/such"}) == {}
