"""The dependencies of the tools, which clients do not see: the caller and the transaction of a call."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from fastmcp import Context
from fastmcp.dependencies import CallArgument, CurrentContext, Depends
from fastmcp.server.dependencies import get_access_token, get_http_headers
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools import ToolResult
from mcp_types import CallToolRequestParams

from common.clock import LONGEST_ZONE, find_zone
from common.database import Database, Transaction
from common.tokens import is_from_backend
from common.tool_server import calls
from common.tool_server.calls import get_user_id, read_meta_text
from common.tool_server.errors import CallError, to_printable
from mcp_server.errors import ForeignUserId, TokenUnchecked, explain_error
from mcp_server.tasks.changes import Caller

LOCAL_USER = "local"
MAX_BATCH_CHARS = 200
LIST_SECONDS = 2.0
_RESERVED_NAMES = ("assistant", "person", "import")  # actors of our own, which a client must not pretend to be
_USER_ID: str | None = CallArgument("user_id")
_CONTEXT: Context = CurrentContext()


def _check_user(user_id: str | None, context: Context) -> str:
    token = get_access_token()
    if token is None:
        assert not context.lifespan_context["signs_in"], "a call without a token is rejected before"
        return LOCAL_USER
    assert token.subject
    if user_id and user_id != token.subject:
        raise ForeignUserId
    return token.subject


class SingleUser(Middleware):
    """Without sign-in any `user_id` means the single user."""

    async def on_call_tool(
        self,
        context: MiddlewareContext[CallToolRequestParams],
        call_next: CallNext[CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        arguments = context.message.arguments or {}
        if "user_id" not in arguments:
            return await call_next(context)
        is_other = get_user_id() is None and arguments["user_id"] != LOCAL_USER
        if is_other and get_http_headers(include={"authorization"}).get("authorization"):
            # From a backend with AUTH_MODE=jwt: without its secret, all its users would share one list.
            raise TokenUnchecked
        rest = {name: value for name, value in arguments.items() if name != "user_id"}
        return await call_next(context.copy(message=context.message.model_copy(update={"arguments": rest})))


async def _create_caller(user_id: str | None = _USER_ID, context: Context = _CONTEXT) -> Caller:
    owner = _check_user(user_id, context)
    if (call := calls.current.get()) is not None:
        call.owner = owner
    request = context.request_context
    meta = (request and request.meta) or {}
    client = request and request.session.client_params
    token = get_access_token()
    trusted_meta = meta if token and is_from_backend(token.claims) else {}
    actor = read_meta_text(trusted_meta, "todo/actor", max_length=60)
    return Caller(
        user_id=owner,
        actor=actor or (_get_client_name(client.client_info.name) if client else "") or "mcp",
        idempotency_key=read_meta_text(meta, "todo/idempotency_key", max_length=200),
        batch=read_meta_text(trusted_meta, "todo/batch", max_length=MAX_BATCH_CHARS),
        undo_batch=read_meta_text(trusted_meta, "todo/undo_batch", max_length=MAX_BATCH_CHARS),
        overdue_part=read_meta_text(trusted_meta, "todo/overdue_part", max_length=10),
        quota=context.lifespan_context["quota"],
        zone=find_zone(read_meta_text(meta, "todo/time_zone", max_length=LONGEST_ZONE) or ""),
        usual_zone=context.lifespan_context["zone"],
        clock=context.lifespan_context["clock"],
    )


def _get_client_name(name: str) -> str:
    """Returns a client's name unless it looks like a reserved one, which letters of other scripts may imitate."""
    letters = "".join(filter(str.isalpha, name)).casefold()
    return to_printable(name).strip() if name.isascii() and letters not in _RESERVED_NAMES else ""


CALLER: Caller = Depends(_create_caller)


@asynccontextmanager
async def _open_transaction(
    caller: Caller = CALLER, context: Context = _CONTEXT, *, statement_seconds: float | None = None
) -> AsyncIterator[Transaction]:
    """Commits the caller's transaction when the tool returns, and rolls it back when the tool raises."""
    database: Database = context.lifespan_context["database"]
    failure: CallError | None = None
    is_committing = False
    try:
        async with database.transaction(caller.user_id, statement_seconds=statement_seconds) as tx:
            try:
                yield tx
                calls.mark_committing()
                is_committing = True
            except CallError as error:
                failure = error
                await tx.roll_back()
    except CallError as error:  # from an error of PostgreSQL
        raise error from None
    except Exception as error:  # noqa: BLE001 - clients get a sentence for every error
        raise explain_error(error, is_committing=is_committing) from None
    if failure:
        raise failure


def _open_list_transaction(
    caller: Caller = CALLER, context: Context = _CONTEXT
) -> AbstractAsyncContextManager[Transaction]:
    return _open_transaction(caller, context, statement_seconds=LIST_SECONDS)


TRANSACTION: Transaction = Depends(_open_transaction)
LIST_TRANSACTION: Transaction = Depends(_open_list_transaction)
"""Ends a statement that takes longer than `LIST_SECONDS`, as a list of many long texts may."""
