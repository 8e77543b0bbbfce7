import os
from collections.abc import Mapping

from cli.data_dir import CHECKOUT

OFFLINE = "offline"


def load() -> dict[str, str]:
    """This process's environment over the checkout's `.env`; an empty value counts as none."""
    values: dict[str, str | None] = {}
    if (CHECKOUT / ".env").exists():
        from dotenv import dotenv_values

        values.update(dotenv_values(CHECKOUT / ".env"))
    return {name: value for name, value in {**values, **os.environ}.items() if value}


def needs_offline_model(environment: Mapping[str, str]) -> bool:
    """Whether nobody but the offline model could answer: no key and no address of a model."""
    if "LLM_BASE_URL" in environment:
        return False
    has_key = "CEREBRAS_API_KEY" in environment or "LLM_API_KEY" in environment
    return environment.get("LLM_PROVIDER", "cerebras" if has_key else OFFLINE) == OFFLINE
