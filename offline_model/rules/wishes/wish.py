"""What a row of the table of wishes is."""

from typing import NamedTuple

from offline_model.rules import plans
from offline_model.rules.lookup import Kind


class Wish(NamedTuple):
    pattern: str
    plan: plans.Plan
    answer: str = ""
    kind: Kind = "request"
    """An aside is dropped where there is a request too; a reply such as "2" makes sense only as an answer."""
