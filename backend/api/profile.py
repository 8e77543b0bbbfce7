"""`/profile`: the user's name and time zone, which they alone change."""

from fastapi import APIRouter, Depends
from pydantic import BaseModel, Field, StrictStr

from backend.api.dependencies import AppServices, LimitedUser, UserRoute, forbid_caching
from backend.api.request_body import RequestBody
from backend.errors import InvalidRequest, shorten
from backend.users import profiles, schedules
from common.clock import choose_zone, find_zone
from common.text import is_single_line_text, remove_invisible, remove_stacked_marks

_MAX_NAME = 100

router = APIRouter(route_class=UserRoute, dependencies=[Depends(forbid_caching)])


class ProfileChange(RequestBody):
    name: StrictStr | None = Field(default=None, description="How you want to be called; empty removes it.")
    time_zone: StrictStr | None = Field(
        default=None, description="A time zone of IANA's database, such as Europe/Berlin."
    )


class ShownProfile(BaseModel):
    user_id: str
    name: str
    time_zone: str | None = Field(description="Null until a request of the user has named one.")


@router.get("/profile")
async def get_profile(services: AppServices, user: LimitedUser) -> ShownProfile:
    """Returns the profile; the zone of the request is stored if there is none yet."""
    if user.time_zone is not None:
        await profiles.set_first_time_zone(services.database, user.user_id, user.time_zone)
    return _show(user.user_id, await profiles.load_profile(services.database, user.user_id))


@router.patch("/profile")
async def change_profile(services: AppServices, user: LimitedUser, body: ProfileChange) -> ShownProfile:
    """Changes what the body names."""
    if body.name is None and body.time_zone is None:
        raise InvalidRequest("Send what is to change: name, time_zone or both.")
    name = None if body.name is None else _clean_name(body.name)
    if body.time_zone is not None and find_zone(body.time_zone) is None:
        raise InvalidRequest(
            "time_zone must be a time zone of IANA's database, such as Europe/Berlin, and not "
            f"{shorten(body.time_zone) or 'empty'}."
        )
    changed = await profiles.change_profile(services.database, user.user_id, name=name, time_zone=body.time_zone)
    if body.time_zone is not None:
        zone = choose_zone(body.time_zone, services.time_zone)
        await schedules.move_all(services.database, user.user_id, zone)
    return _show(user.user_id, changed)


def _clean_name(name: str) -> str:
    cleaned = remove_stacked_marks(remove_invisible(name)).strip()
    if name.strip() and not is_single_line_text(cleaned, max_length=_MAX_NAME):
        raise InvalidRequest(f"name must be one line of up to {_MAX_NAME} visible characters, or empty.")
    return cleaned


def _show(user_id: str, profile: profiles.Profile) -> ShownProfile:
    return ShownProfile(user_id=user_id, name=profile.name, time_zone=profile.time_zone)
