"""`./todo models` looks for the Ollama that `./todo up` would take."""

import os

import pytest

from tests.fake_ollama import listening, model
from tests.settings import example

pytestmark = [pytest.mark.long, pytest.mark.alone]  # it starts Python six times, and an Ollama is waited for shortly

TOOLS = ("completion", "tools")


@pytest.fixture
def models(start):
    """What it prints, and its status; of this machine's settings it is given none."""

    def run(*options: str, **variables: str) -> tuple[str, int]:
        kept = {name: value for name, value in os.environ.items() if name not in example()}
        process = start("-m", "cli", "models", *options, env=kept | {"NO_COLOR": "1"} | variables)
        output, _ = process.communicate(timeout=60)
        return output, process.returncode

    return run


def test_an_ollama_on_this_machine_would_be_used_and_is_shown_beside_another(models) -> None:
    with listening(model("qwen3:8b", *TOOLS), model("gemma3:4b", "completion")) as host:
        alone, status = models(OLLAMA_HOST=host)
        assert (alone, status) == (f"ollama, http://{host}/v1 (used: qwen3:8b)\n  gemma3:4b\n  qwen3:8b (used)\n", 0)
        key = "sk-secret"
        beside, status = models(
            LLM_PROVIDER="custom",
            LLM_BASE_URL=f"http://{host}/v1",
            LLM_MODEL="gemma3:4b",
            LLM_API_KEY=key,
            OLLAMA_HOST=host,
        )
        assert status == 0
        assert f"custom, http://{host}/v1 (used: gemma3:4b)\n" in beside
        assert f"\nollama, http://{host}/v1\n" in beside
        assert key not in beside
    with listening(model("gemma3:4b", "completion")) as host:
        output, status = models("--check", OLLAMA_HOST=host)
        assert status == 0
        assert "Ollama has no model on this machine that can call tools.\n" in output
        assert "offline: rules instead of a language model" in output
