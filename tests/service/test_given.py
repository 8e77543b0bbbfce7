import pytest

from backend.settings import Settings as BackendSettings
from mcp_server.settings import Settings as McpSettings
from offline_model.settings import Settings as OfflineSettings
from service import given
from service.workers import ClientLimits
from tests.settings import example, variables
from workspace.settings import Settings as WorkspaceSettings

SETTINGS = {
    "backend": {*variables(BackendSettings), *variables(ClientLimits)},
    "mcp_server": {*variables(McpSettings), *variables(ClientLimits)},
    "offline_model": {*variables(OfflineSettings), *variables(ClientLimits)},
    "workspace": {*variables(WorkspaceSettings), *variables(ClientLimits)},
    "migrations": {"DATABASE_URL", "MIGRATION_DATABASE_URL"},
}
SERVICES = {"backend", "mcp_server"}
EVERYBODY = set(SETTINGS)


@pytest.mark.parametrize("part", SETTINGS)
def test_a_part_is_given_the_settings_it_has_and_no_other(part):
    assert given.to(part, example()).keys() == SETTINGS[part]


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("PATH", EVERYBODY),
        ("LC_ALL", EVERYBODY),
        ("PYTHONUNBUFFERED", EVERYBODY),
        ("PGSSLROOTCERT", EVERYBODY - {"offline_model", "workspace"}),
        ("OTEL_EXPORTER_OTLP_HEADERS", SERVICES),
        ("https_proxy", SERVICES),
        ("SSL_CERT_FILE", SERVICES),
        ("REQUESTS_CA_BUNDLE", SERVICES),
        ("OPENAI_ORG_ID", {"backend"}),
        ("AWS_SECRET_ACCESS_KEY", set()),
        ("GITHUB_TOKEN", set()),
        ("XPATH", set()),
        ("PATHS", set()),
    ],
)
def test_of_other_variables_it_is_given_those_that_its_libraries_read(name, parts):
    assert {part for part in SETTINGS if given.to(part, {name: "x"})} == parts
