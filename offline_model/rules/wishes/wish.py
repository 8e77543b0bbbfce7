"""What a row of the table of wishes is."""

from typing import NamedTuple

from offline_model.rules.intents import Kind, Plan


class Wish(NamedTuple):
    pattern: str
    plan: Plan
    answer: str = ""
    kind: Kind = "request"
    """An aside is dropped where there is a request too; a reply such as "2" makes sense only as an answer."""
