import pytest

from tests.workspace.cost import cost, table
from tests.workspace.kinds import usable

pytestmark = pytest.mark.long


async def test_the_table_of_costs_has_a_row_for_each_confinement() -> None:
    """No command takes a second to be confined, whatever else the machine does."""
    costs = [await cost(kind, times=5, at_once=5) for kind in ["none", *usable()]]
    assert [line.split("  ")[0] for line in table(costs)][1:] == ["none", *usable()]
    assert all(one.median_ms < 1_000 for one in costs)
