"""`GET /health`, `/ready` and `/metrics`."""

import asyncio
from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from backend.api.dependencies import AppServices, Services
from backend.api.openapi import content
from backend.runs.metrics import observe_process
from common.database import schema
from common.telemetry import metrics

_NOT_LISTENING = (
    "This process cannot listen to the database, so that others may end its runs."
    " Check LISTEN_DATABASE_URL, else DATABASE_URL."
)

router = APIRouter()


class Health(BaseModel):
    status: Literal["ok"] = "ok"


class Readiness(BaseModel):
    status: Literal["ready", "not ready"]
    reason: str | None = Field(default=None, description="Why no answer could be written now.")
    model: dict[str, Any] | None = Field(default=None, description="The model, and the outcome of its last request.")
    agents: dict[str, Any] | None = None
    unusable: dict[str, str] | None = Field(default=None, description="MCP servers that cannot be used, and why.")
    warning: str | None = None


_NOT_READY: dict[int | str, dict[str, Any]] = {
    503: {"model": Readiness, "description": "Not ready; `reason` says why."}
}


@router.get("/health")
async def get_health() -> Health:
    return Health()


@router.get("/ready", response_model=Readiness, responses=_NOT_READY)
async def get_readiness(request: Request, services: AppServices) -> Response:
    """Responds whether runs could be executed now, with 200 or 503; requests at the same time share one check."""
    status, content = await request.app.state.readiness(services)
    return JSONResponse(content, status_code=status)


@router.get("/metrics", response_class=Response, responses=content("text/plain", "In the format of Prometheus."))
async def get_metrics(services: AppServices) -> Response:
    observe_process(services.database)
    return metrics.render_metrics()


async def check_readiness(services: Services) -> tuple[int, dict[str, Any]]:
    """Returns a status and a body: 200 if a run could be executed now, otherwise 503 and the reason.

    The database, its LISTEN connection and the task server are required; the model, agents and other MCP servers are
    only reported. A workspace that starts beside this process is waited for: until it answers, nobody knows what agents
    may do.
    """
    looking = schema.check_connection(services.database.login_connection())
    found, tools_reason = await asyncio.gather(looking, services.tools.problem())
    files = services.folder_files
    starting = "The workspace has not answered yet." if files and files.is_starting else None
    lost = _NOT_LISTENING if services.runs.connection.may_seem_dead else None
    if reason := found.problem or lost or tools_reason or starting:
        return 503, {"status": "not ready", "reason": reason}
    agents = files.agents() if files else None
    more = {"agents": agents, "unusable": services.connectors.unusable(), "warning": found.warning}
    details = {name: value for name, value in more.items() if value}
    return 200, {"status": "ready", "model": await services.model.client.report(), **details}
