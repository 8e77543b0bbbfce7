"""Who makes a tool call, and the transaction it runs in: what the tools depend on, and no client ever sees."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fastmcp import Context
from fastmcp.dependencies import CallArgument, CurrentContext, Depends
from fastmcp.exceptions import ToolError
from fastmcp.server.dependencies import get_access_token
from sqlmodel.ext.asyncio.session import AsyncSession

from database import transaction
from mcp_server import reports
from mcp_server.arguments import is_plain
from mcp_server.changes import Caller
from mcp_server.errors import ForeignUserId, MetaInvalid, explained, shown

LOCAL_USER = "local"
_USER_ID: str | None = CallArgument("user_id")
_CONTEXT: Context = CurrentContext()


async def _owner(user_id: str | None = _USER_ID, context: Context = _CONTEXT) -> str:
    owner = _checked(user_id, context)
    if (call := reports.current.get()) is not None:
        call.owner = owner
    return owner


def _checked(user_id: str | None, context: Context) -> str:
    """The person whose tasks a call is about: the token's. With AUTH_MODE=none, `user_id` is taken at its word."""
    if context.lifespan_context["auth_mode"] == "none":
        return user_id or LOCAL_USER
    token = get_access_token()
    assert token, "a call without a token does not come this far"
    assert token.subject
    if user_id and user_id != token.subject:
        raise ForeignUserId
    return token.subject


OWNER: str = Depends(_owner)


async def _caller(owner: str = OWNER, context: Context = _CONTEXT) -> Caller:
    request = context.request_context
    meta = (request and request.meta) or {}
    client = request and request.session.client_params
    name = shown(client.client_info.name).strip() if client else ""
    return Caller(
        user_id=owner,
        actor=_label(meta, "todo/actor", longest=60) or name or "mcp",
        idempotency_key=_label(meta, "todo/idempotency_key", longest=200),
    )


CALLER: Caller = Depends(_caller)


@asynccontextmanager
async def _session(caller: Caller = CALLER, context: Context = _CONTEXT) -> AsyncIterator[AsyncSession]:
    """A transaction as the caller, committed when the tool has returned."""
    returned = False
    try:
        async with transaction(context.lifespan_context["engine"], caller.user_id) as session:
            yield session
            returned = True
    except ToolError:
        raise
    except Exception as error:  # noqa: BLE001 - an edge of the process: only sentences leave it
        raise explained(error, committing=returned) from None


SESSION: AsyncSession = Depends(_session)


def _label(meta: Mapping[str, Any], name: str, *, longest: int) -> str | None:
    label = meta.get(name)
    if label is None:
        return None
    if not isinstance(label, str) or not 1 <= len(label) <= longest or not is_plain(label):
        raise MetaInvalid(name=name, longest=longest)
    return label
