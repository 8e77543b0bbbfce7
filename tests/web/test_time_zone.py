"""The page says where the person is."""

import pytest

from tests.backend.now import told_now
from tests.scripted_model import ScriptedModel
from tests.web import screen
from tests.web.conftest import OpenPage

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]


@pytest.mark.parametrize("zone", ["Pacific/Honolulu", "Pacific/Tongatapu"])
async def test_the_model_is_told_the_day_where_the_browser_is(
    open_page: OpenPage, model: ScriptedModel, zone: str
) -> None:
    page = await open_page(timezone_id=zone)
    await screen.say(page, "hello")
    await screen.answered(page)
    [told] = told_now((await model.finished_requests())[-1]["body"]["messages"])
    day = await page.evaluate("new Date().toLocaleDateString('sv')")
    assert told[4:14] == day
    assert told.endswith(f", {zone}")
