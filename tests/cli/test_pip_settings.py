"""What uv is handed of the settings of pip."""

from pathlib import Path

import pytest

from cli.pip_settings import create_uv_settings

INDEX = "https://me:secret@packages.example/simple"
CONFIGURED = f"""\
global.cert='/etc/company.pem'
global.extra-index-url='\\nhttps://one.example/simple\\nhttps://two.example/simple'
global.index-url='{INDEX}'
global.timeout='30'
install.find-links='/srv /no/such/wheels ~/wheels https://three.example/wheels file:///no/such'
install.timeout='60.5'
install.trusted-host='packages.example one.example:8443'
:env:.proxy='only.the.variable.counts:1'
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "wheels").mkdir()
    return tmp_path


def translate(home: Path, configuration: str = "", **variables: str) -> tuple[list[str], dict[str, str]]:
    return create_uv_settings(configuration, {"XDG_CONFIG_DIRS": str(home), **variables})


def test_configuration(home: Path) -> None:
    assert translate(home, CONFIGURED) == (
        [],
        {
            "UV_HTTP_RETRIES": "2",
            "UV_DEFAULT_INDEX": INDEX,
            "UV_INDEX": "https://one.example/simple https://two.example/simple",
            "UV_INDEX_STRATEGY": "unsafe-best-match",
            "UV_FIND_LINKS": f"/srv,{home}/wheels,https://three.example/wheels",
            "SSL_CERT_FILE": "/etc/company.pem",
            "UV_INSECURE_HOST": "packages.example one.example:8443",
            "UV_HTTP_TIMEOUT": "60",
        },
    )


@pytest.mark.parametrize(
    ("variables", "options", "expected"),
    [
        ({"PIP_INDEX_URL": "http://other/simple"}, [], {"UV_DEFAULT_INDEX": "http://other/simple"}),
        ({"PIP_DEFAULT_TIMEOUT": "180"}, [], {"UV_HTTP_TIMEOUT": "180"}),
        ({"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/srv"}, ["--no-index"], {"UV_FIND_LINKS": "/srv"}),
        ({"PIP_NO_INDEX": "false"}, [], {}),
        ({"PIP_NO_CACHE_DIR": "yes"}, [], {"UV_NO_CACHE": "1"}),
        ({"PIP_CLIENT_CERT": "/me.pem"}, [], {"SSL_CLIENT_CERT": "/me.pem"}),
        ({"REQUESTS_CA_BUNDLE": "/all.pem"}, [], {"SSL_CERT_FILE": "/all.pem"}),
        ({"PIP_CERT": "/"}, [], {"SSL_CERT_DIR": "/"}),
        (
            {"PIP_PROXY": "http://p:1", "HTTPS_PROXY": "http://q:2"},
            [],
            dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://p:1"),
        ),
        ({"PIP_INDEX_URL": ""}, [], {}),
    ],
)
def test_variables(home: Path, variables: dict[str, str], options: list[str], expected: dict[str, str]) -> None:
    assert translate(home, **variables) == (options, {"UV_HTTP_RETRIES": "2", **expected})


def test_variables_precede_the_configuration(home: Path) -> None:
    _, created = translate(home, CONFIGURED, PIP_CERT="/mine.pem", PIP_DEFAULT_TIMEOUT="5")
    assert (created["SSL_CERT_FILE"], created["UV_HTTP_TIMEOUT"]) == ("/mine.pem", "5")


def test_what_is_set_for_uv_stays(home: Path) -> None:
    of_the_user = {
        "SSL_CERT_FILE": "/mine.pem",
        "UV_HTTP_TIMEOUT": "5",
        "UV_INSECURE_HOST": "x",
        "UV_HTTP_RETRIES": "9",
    }
    _, created = translate(home, CONFIGURED, **of_the_user)
    assert not created.keys() & of_the_user.keys()
    _, created = translate(home, CONFIGURED, UV_DEFAULT_INDEX="https://uv.example/simple")
    assert not created.keys() & {"UV_DEFAULT_INDEX", "UV_INDEX", "UV_FIND_LINKS"}


@pytest.mark.parametrize("text", ['[[index]]\nurl = "https://uv.example"\n', "[pip]\nno-index = true\n"])
def test_indexes_in_the_file_of_uv_stay(home: Path, text: str) -> None:
    (home / ".config/uv").mkdir(parents=True)
    (home / ".config/uv/uv.toml").write_text(text)
    _, created = translate(home, CONFIGURED, PIP_NO_INDEX="1")
    assert created.keys() == {"SSL_CERT_FILE", "UV_HTTP_RETRIES", "UV_HTTP_TIMEOUT", "UV_INSECURE_HOST"}
