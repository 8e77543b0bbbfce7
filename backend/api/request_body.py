"""The base of request bodies that reject unknown fields."""

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic_core import PydanticCustomError

from backend.errors import shorten
from common.text import join_words

UNKNOWN_FIELD = "unknown_field"


class RequestBody(BaseModel):
    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _check_names(cls, body: Any) -> Any:
        """Names the fields that exist, which pydantic (2.14) does not."""
        for name in body if isinstance(body, dict) else ():
            if name not in cls.model_fields:
                raise PydanticCustomError(
                    UNKNOWN_FIELD,
                    "{name} is not a field of this request. Its fields are {fields}.",
                    {"name": shorten(name), "fields": join_words([*cls.model_fields])},
                )
        return body
