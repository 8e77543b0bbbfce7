"""The assistant's tool that makes schedules."""

from agents import FunctionTool
from agents.tool_context import ToolContext

from backend.errors import BackendError
from backend.tools.approval_policy import arguments_of
from backend.tools.connection import FailedOutput
from backend.tools.run_context import RunContext
from backend.tools.schedule_arguments import SCHEMA, read_arguments
from backend.users import schedules
from backend.users.profiles import load_time_zone
from common.clock import Clock, choose_zone, render_wall_clock
from common.database import Database

_DESCRIPTION = (
    "Answer `text` again by yourself at times, after approval; not for tasks. repeat as in add_task, with its days; "
    "time HH:MM. The menu lists and deletes schedules."
)


def create_schedule_tool(database: Database, clock: Clock, usual_zone: str) -> FunctionTool:
    """Creates the tool, which runs of schedules do not have. `usual_zone` is that of users without one."""

    async def invoke(context: ToolContext[RunContext], arguments: str) -> str:
        run, call = context.context.run, context.context.open_calls[context.tool_call_id]
        if run.schedule_id is not None:
            return FailedOutput("A schedule makes no schedules.")
        zone = choose_zone(await load_time_zone(database, run.user_id), usual_zone)
        try:
            plan = read_arguments(arguments_of(arguments) or {}, now=clock(), zone=zone)
            schedule_id = f"sch_{call.idempotency_key[:32]}"
            await schedules.add(database, run.user_id, schedule_id, plan, zone=None, only_if_needed=False)
        except BackendError as error:
            return FailedOutput(str(error))
        call.details = {"schedule_id": schedule_id, "when": plan.describe()}
        return f"Made: {plan.describe()}. The first time is {render_wall_clock(plan.first.at, zone.key)}."

    return FunctionTool(
        name="add_schedule",
        description=_DESCRIPTION,
        params_json_schema=SCHEMA,
        on_invoke_tool=invoke,
        is_enabled=lambda context, _agent: context.context.run.schedule_id is None,
    )
