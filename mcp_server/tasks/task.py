from datetime import date, datetime, time
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict

from common.clock import to_utc
from mcp_server.tasks.dates import Due

TASK_COLUMNS = """id, title, description, status, created_at, updated_at, completed_at, due_on, due_time, priority,
    labels, repeat, series"""
ONE_OPEN = "tasks_one_open_of_series"  # the index that allows one open task in a series
PRIORITIES = ("high", "medium", "low")  # 1, 2 and 3 in the database

Moment = Annotated[datetime, AfterValidator(to_utc)]


class Task(BaseModel):
    """A row of the table `tasks` or of its log, whose older rows lack the newer fields."""

    model_config = ConfigDict(frozen=True)

    id: int
    title: str
    description: str
    status: Literal["pending", "completed"]
    created_at: Moment
    updated_at: Moment
    completed_at: Moment | None
    due_on: date | None = None
    due_time: time | None = None
    priority: int | None = None
    labels: tuple[str, ...] = ()
    repeat: str | None = None
    series: int | None = None

    @classmethod
    def new(cls, title: str, moment: datetime) -> "Task":
        moments = {"created_at": moment, "updated_at": moment, "completed_at": None}
        return cls(id=0, title=title, description="", status="pending", **moments)

    @property
    def due(self) -> Due | None:
        return Due(self.due_on, self.due_time) if self.due_on else None

    def as_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json")

    def render(self, user_id: str) -> dict[str, Any]:
        return {
            "user_id": user_id,
            **self.model_dump(mode="json", exclude={"due_on", "due_time"}),
            "due": self.due,
            "priority": PRIORITIES[self.priority - 1] if self.priority else None,
        }
