"""Reads settings from the environment and describes what is wrong with them."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, LiteralString, NoReturn, ParamSpec, TypeVar

from pydantic import AfterValidator, AliasChoices, BeforeValidator, ValidationError
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

CONFIG = SettingsConfigDict(
    env_ignore_empty=True,
    extra="ignore",
    frozen=True,
    hide_input_in_errors=True,  # the input of a validator of all settings has all secrets
)
"""`python -m tests.settings` writes each field's docstring into `.env.example`.

Without `use_attribute_docstrings`, for which pydantic parses the source of each class whenever a service starts.
"""

_Settings = TypeVar("_Settings", bound=BaseSettings)
_Value = TypeVar("_Value")
_Arguments = ParamSpec("_Arguments")
_SECRETS = Path("/run/secrets")
_NUMBER_ERRORS = ("int_", "float_", "finite_", "greater_", "less_")  # how their types begin


class SettingsInvalid(Exception):
    """The text has one sentence for each setting that is missing or wrong, with the name of its variable."""


def read_settings(kind: type[_Settings]) -> _Settings:
    """Reads the environment and mounted secrets; raises `SettingsInvalid`."""
    try:
        return kind(_secrets_dir=find_secrets_folder())
    except ValidationError as error:
        # Pydantic also reports each default that depends on a wrong setting.
        problems = [problem for problem in error.errors() if problem["type"] != "default_factory_not_called"]
        raise SettingsInvalid("\n".join(_describe_problem(kind, problem) for problem in problems)) from None


def find_secrets_folder() -> Path | None:
    """Returns the folder of a container's secrets, each a file named as its setting, or None."""
    return _SECRETS if _SECRETS.is_dir() else None


def stop_misconfigured(sentence: str) -> NoReturn:
    """Exits with the status of a configuration error (78, sysexits.h), after which supervisors do not restart it."""
    sys.stderr.write(f"{sentence}\n")
    sys.exit(os.EX_CONFIG)


def read_or_stop(
    read: Callable[_Arguments, _Value], *arguments: _Arguments.args, **options: _Arguments.kwargs
) -> _Value:
    try:
        return read(*arguments, **options)
    except SettingsInvalid as error:
        stop_misconfigured(str(error))


def _split_commas(value: Any) -> Any:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


CommaSeparated = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split_commas)]


def require(is_valid: Callable[[Any], object], sentence: LiteralString) -> AfterValidator:
    """Rejects other values; the name of the setting comes before the sentence."""

    def check(value: Any) -> Any:
        if not is_valid(value):
            raise PydanticCustomError("setting", sentence)
        return value

    return AfterValidator(check)


def _describe_problem(kind: type[BaseSettings], problem: Any) -> str:
    if not problem["loc"]:  # from a validator of all settings, whose message is a sentence
        return problem["msg"]
    field = str(problem["loc"][0]).lower()  # the error names the first alias, if there are several
    name = _get_variable(kind, field)
    match problem["type"]:
        case "missing":
            return f"{name} is not set. See .env.example for what it means."
        case "literal_error":
            return f"{name} must be {problem['ctx']['expected'].replace(chr(39), '')}."
        case "bool_parsing":
            return f"{name} must be true or false."
        case str() as type_ if type_.startswith(_NUMBER_ERRORS):
            return f"{name} must be {_describe_number(kind, field)}."
        case _:
            return f"{name} {problem['msg']}."


def _get_variable(kind: type[BaseSettings], field: str) -> str:
    """Returns the variable that was read: some settings have a former name, or another that stands in for them."""
    aliases = kind.model_fields[field].validation_alias
    names = [str(name) for name in aliases.choices] if isinstance(aliases, AliasChoices) else [field.upper()]
    return next((name for name in names if os.environ.get(name)), names[0])


def _describe_number(kind: type[BaseSettings], field: str) -> str:
    info = kind.model_fields[field]
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
