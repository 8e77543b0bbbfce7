"""What the first page of a list with a filter takes PostgreSQL: the longest of the call's statements, on the wire."""

from statistics import median

from bench.drivers.product import Tools
from bench.endpoints.relay import Relay
from bench.measure.database import relayed
from bench.rows import Row
from bench.stage import FEW, MANY, THOUSAND, Stage, tools_of

# Each finds less than a page, so that all tasks are looked at.
FILTERS = {
    "query": {"query": "zoe WRITE"},
    "label": {"label": "garden"},
    "priority": {"status": "pending", "priority": "high"},
    "due day": {"status": "pending", "due": "overdue"},
    "day done": {"status": "completed", "done": "today"},
}
_PREPARED = 6  # calls, after which the statements are known to PostgreSQL


async def lists(stage: Stage) -> list[Row]:
    async with relayed(stage.place.database_url) as relay:
        mcp = stage.place.mcp_server(relay.url)
        try:
            await mcp.ready()
            tools, calls = tools_of(mcp), _PREPARED + stage.scale.long_rounds * 5
            found = {
                name: [await _longest(relay, tools, calls, person, wish) for person in (FEW, THOUSAND, MANY)]
                for name, wish in FILTERS.items()
            }
        finally:
            await mcp.stop()
    rows: list[Row] = []
    for name, (few, thousand, many) in found.items():
        rows.append(Row(f"list_tasks by {name}", thousand, "ms", few, "20 tasks", thousand / few))
        rows.append(Row(f"list_tasks by {name}, of many", many, "ms", thousand, "1,000 tasks", many / thousand))
    return rows


async def _longest(relay: Relay, tools: Tools, calls: int, person: str, wish: dict[str, str]) -> float:
    longest: list[float] = []
    for _ in range(calls):
        relay.waits.clear()
        await tools.first_page(person, **wish)
        longest.append(max(relay.waits) * 1000)
    return median(longest[_PREPARED:])
