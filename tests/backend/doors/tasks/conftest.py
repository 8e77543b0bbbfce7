import pytest
from pydantic import SecretStr

from backend.settings import Settings
from tests.backend.doors.tasks.person import AUDIENCE, Person
from tests.chatkit_client import ChatKit
from tests.tokens import IDP_SECRET, ISSUER


@pytest.fixture
def settings(settings: Settings) -> Settings:
    identity = {
        "auth_mode": "jwt",
        "auth_jwt_secret": SecretStr(IDP_SECRET),
        "auth_issuer": ISSUER,
        "auth_audience": AUDIENCE,
    }
    return Settings.model_validate(settings.model_dump(exclude_unset=True) | identity)


@pytest.fixture
async def alice(chat: ChatKit) -> Person:
    return Person(chat, "alice")


@pytest.fixture
async def bob(chat: ChatKit) -> Person:
    return Person(chat, "bob")
