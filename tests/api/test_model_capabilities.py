"""What a model's server can do, and what the assistant does with a model that cannot call tools."""

import pytest

from tests.scripted_model import ScriptedModel
from tests.support.backends import user_at
from tests.support.model_requests import requests_to
from tests.support.script import says
from tests.support.stack import Services
from tests.support.stored import Stored
from tests.support.users import User

CUSTOM = {"LLM_PROVIDER": "custom", "LLM_MODEL": "m"}
WRITTEN = 'I add it.\n{"name": "add_task", "arguments": {"title": "milk"}}'


@pytest.mark.parametrize(("setting", "titles"), [("", ["milk"]), ("streamed", [])])
async def test_calls_that_are_written_as_text(
    setting: str,
    titles: list[str],
    services: Services,
    user: User,
    model: ScriptedModel,
    stored: Stored,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """After the second one the model's calls are read from its text, unless LLM_TOOL_CALLS is set."""
    await model.script(says(WRITTEN), says(WRITTEN), says(WRITTEN), says("Added."))
    async with user_at(services, user, **CUSTOM, LLM_TOOL_CALLS=setting) as there:
        thread = (await there.runs.begin("A talk"))["id"]
        for _ in range(2):
            assert (await there.chatkit.say("add milk", thread)).text == WRITTEN
        assert stored.titles(user.name) == []
        await there.chatkit.say("add milk", thread)
        bodies = await requests_to(model)
    assert stored.titles(user.name) == titles
    assert ["tools" in body for body in bodies[:3]] == [True, True, not titles]
    lines = [record.getMessage() for record in caplog.records if "written a call as text" in record.getMessage()]
    assert len(lines) == len(titles)
