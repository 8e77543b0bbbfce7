"""What the services' settings have in common: how they are read, and what is said of one that cannot work."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar

from pydantic import BeforeValidator, ValidationError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

CONFIG = SettingsConfigDict(env_ignore_empty=True, extra="ignore", frozen=True, use_attribute_docstrings=True)
"""A field's docstring is what `.env.example` says of the setting: `python -m tests.settings` writes that file."""

_Read = TypeVar("_Read", bound=BaseSettings)
_Any = TypeVar("_Any")
_SECRETS = Path("/run/secrets")
_NUMBERS = ("int_", "float_", "finite_", "greater_", "less_")  # how their errors' types begin


class SettingsInvalid(Exception):
    """Its text is one sentence for each setting that is missing or wrong, naming its environment variable."""


def read(kind: type[_Read]) -> _Read:
    """The settings in the environment and in mounted secrets; raises `SettingsInvalid`."""
    try:
        return kind(_secrets_dir=mounted_secrets())
    except ValidationError as error:
        # A default that depends on a setting which is wrong is no fault of its own.
        wrong = [problem for problem in error.errors() if problem["type"] != "default_factory_not_called"]
        raise SettingsInvalid("\n".join(_sentence(kind, problem) for problem in wrong)) from None


def mounted_secrets() -> Path | None:
    """Where a container is given secrets, each in a file named as its setting; None where there is no such place."""
    return _SECRETS if _SECRETS.is_dir() else None


def stop_misconfigured(sentence: str) -> NoReturn:
    """End with the status of a configuration error (78, sysexits.h): who restarts services leaves this one stopped."""
    sys.stderr.write(f"{sentence}\n")
    sys.exit(os.EX_CONFIG)


def or_stop(read: Callable[[], _Any]) -> _Any:
    """What `read` returns; for settings that cannot work, the process ends as `stop_misconfigured` does."""
    try:
        return read()
    except SettingsInvalid as error:
        stop_misconfigured(str(error))


def _split(value: Any) -> Any:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


CommaSeparated = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]


def _sentence(kind: type[BaseSettings], problem: Any) -> str:
    """A validator of ours says by itself what its setting must be; one of all of them says the whole sentence."""
    if not problem["loc"]:
        return problem["msg"]
    field = str(problem["loc"][0])
    name = f"{kind.model_config.get('env_prefix', '')}{field}".upper()
    match problem["type"]:
        case "missing":
            return f"{name} is not set. See .env.example for what it means."
        case "literal_error":
            return f"{name} must be {problem['ctx']['expected'].replace(chr(39), '')}."
        case "bool_parsing":
            return f"{name} must be true or false."
        case str() as type_ if type_.startswith(_NUMBERS):
            return f"{name} must be {_number(kind, field)}."
        case _:
            return f"{name} {problem['msg']}."


def _number(kind: type[BaseSettings], field: str) -> str:
    info = kind.model_fields[field.lower()]  # where it has an alias, that is named
    bounds = {name: getattr(rule, name) for rule in info.metadata for name in ("ge", "gt", "le") if hasattr(rule, name)}
    number = "a number" if "float" in str(info.annotation) else "a whole number"
    match bounds:
        case {"ge": least, "le": most}:
            return f"{number} from {least} to {most}"
        case {"ge": least}:
            return f"{number} that is at least {least}"
        case {"gt": least}:
            return f"{number} greater than {least}"
        case _:
            return number
