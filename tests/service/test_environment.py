"""What is said of settings that cannot work."""

from typing import Annotated, Literal

import pytest
from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from service.environment import SettingsInvalid, read
from service.workers import ClientLimits


class Example(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="EXAMPLE_", env_ignore_empty=True)

    needed: str
    workers: int = Field(default=1, ge=1, le=64)
    most: int | None = Field(default=None, ge=1)
    seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1
    any: int = 0
    level: Literal["LOW", "HIGH", "NONE"] = "LOW"
    open: bool = False


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("NEEDED", "", "EXAMPLE_NEEDED is not set: .env.example says what it is."),
        ("WORKERS", "65", "EXAMPLE_WORKERS must be a whole number from 1 to 64."),
        ("WORKERS", "1.5", "EXAMPLE_WORKERS must be a whole number from 1 to 64."),
        ("MOST", "0", "EXAMPLE_MOST must be a whole number that is at least 1."),
        ("MOST", "many", "EXAMPLE_MOST must be a whole number that is at least 1."),
        ("SECONDS", "0", "EXAMPLE_SECONDS must be a number greater than 0."),
        ("SECONDS", "inf", "EXAMPLE_SECONDS must be a number greater than 0."),
        ("ANY", "x", "EXAMPLE_ANY must be a whole number."),
        ("LEVEL", "OTHER", "EXAMPLE_LEVEL must be LOW, HIGH or NONE."),
        ("OPEN", "perhaps", "EXAMPLE_OPEN must be true or false."),
    ],
)
def test_it_is_one_sentence_in_words_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, sentence: str
) -> None:
    monkeypatch.setenv("EXAMPLE_NEEDED", "given")
    monkeypatch.setenv(f"EXAMPLE_{name}", value)
    with pytest.raises(SettingsInvalid) as refusal:
        read(Example)
    assert str(refusal.value) == sentence


@pytest.mark.parametrize("name", ClientLimits.model_fields)
def test_every_limit_says_what_it_must_be(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name.upper(), "none")
    with pytest.raises(SettingsInvalid, match=rf"^{name.upper()} must be a (whole )?number [a-z ]+[01]\.$"):
        read(ClientLimits)
