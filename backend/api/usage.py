"""`GET /usage`: the model tokens that the user has used today, and their limit."""

from datetime import UTC, date, datetime, time, timedelta

from fastapi import APIRouter, Depends
from pydantic import BaseModel, Field

from backend.api.dependencies import AppServices, LimitedUser, UserRoute, forbid_caching
from backend.users import usage

router = APIRouter(route_class=UserRoute)


class TokenUsage(BaseModel):
    day: date = Field(description="In UTC.")
    input_tokens: int
    output_tokens: int
    limit: int | None = Field(description="The most tokens of a day, input and output; null: any number.")
    resets_at: datetime = Field(description="When the next day begins.")


@router.get("/usage", dependencies=[Depends(forbid_caching)])
async def get_usage(services: AppServices, user: LimitedUser) -> TokenUsage:
    """Returns the model tokens that the user's answers, agents, titles and summaries have used today."""
    today = await usage.load_today(services.database, user.user_id)
    return TokenUsage(
        day=today.day,
        input_tokens=today.input_tokens,
        output_tokens=today.output_tokens,
        limit=services.runs.limits.tokens_per_day,
        resets_at=datetime.combine(today.day + timedelta(days=1), time.min, UTC),
    )
