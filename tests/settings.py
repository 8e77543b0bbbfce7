"""The settings of a service, and those that `.env.example` shows."""

import re
from collections.abc import Iterator

from pydantic_settings import BaseSettings

from tests.conftest import ROOT


def variables(settings: type[BaseSettings]) -> Iterator[str]:
    prefix = settings.model_config.get("env_prefix", "")
    return (f"{prefix}{name}".upper() for name in settings.model_fields)


def example() -> dict[str, str]:
    return dict(re.findall(r"^([A-Z_]+)=(.*)$", (ROOT / ".env.example").read_text(), re.MULTILINE))
