"""A call that is refused: its sentence, and what a program is told beside it."""

import logging
import secrets
from collections.abc import Callable, Mapping
from traceback import format_tb
from typing import Any, ClassVar, Literal

from fastmcp.exceptions import NotFoundError, ToolError, ValidationError
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools import ToolResult
from mcp_types import CallToolRequestParams
from pydantic import ValidationError as PydanticError

Kind = Literal["invalid", "not_found", "conflict", "limit", "unavailable"]
_KIND = "todo/refusal"  # in the result's _meta


class Refusal(ToolError):
    """What the caller can act on. The docstring of each is its sentence."""

    kind: ClassVar[Kind] = "invalid"

    def __init__(self, **values: object) -> None:
        sentence = " ".join((self.__doc__ or "").split())  # it may stand on several lines
        super().__init__(sentence.format(**values), log_level=logging.DEBUG)


class MetaInvalid(Refusal):
    """{name} in _meta must be text of 1 to {longest} characters without control characters, or left out."""


class CallCancelled(Refusal):
    """The call was cancelled before it changed anything. Send it again if you still want it."""

    kind = "unavailable"


class TooFast(Refusal):
    """Too many calls, so this one was not made. Try again in {seconds} seconds."""

    kind = "limit"


class ArgumentsInvalid(Refusal):
    """{problems}."""


class UnknownTool(Refusal):
    """There is no tool {name}. The tools are {known}."""


class Unavailable(Refusal):
    """{sentence}"""

    kind = "unavailable"


class Refusals(Middleware):
    """Tells of which kind a refusal is. Outside of all others, which tell refusals by raising them."""

    async def on_call_tool(
        self,
        context: MiddlewareContext[CallToolRequestParams],
        call_next: CallNext[CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        try:
            return await call_next(context)
        except Refusal as refusal:
            return ToolResult(content=str(refusal), meta={_KIND: refusal.kind}, is_error=True)


class FriendlyErrors(Middleware):
    """Turns what FastMCP itself refuses into sentences that say what is allowed.

    `rules` complete "<argument> must be …", for all tools or for `tool.argument`; `explain` makes a sentence of what no
    caller can help.
    """

    def __init__(
        self,
        schemas: Mapping[str, Mapping[str, Any]],
        *,
        rules: Mapping[str, str],
        explain: Callable[[Exception], Refusal],
    ) -> None:
        self._schemas = schemas
        self._rules = rules
        self._explain = explain

    async def on_call_tool(
        self,
        context: MiddlewareContext[CallToolRequestParams],
        call_next: CallNext[CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        name = context.message.name
        try:
            return await call_next(context)
        except NotFoundError:
            raise UnknownTool(name=shown(name), known=", ".join(self._schemas)) from None
        except ValidationError as error:
            if not isinstance(cause := error.__cause__, PydanticError):
                raise
            raise ArgumentsInvalid(problems="; ".join(self._problems(name, cause))) from None
        except ToolError as error:
            if isinstance(error.__cause__, Exception):  # FastMCP's own mask: it logs nothing here, see logs.py
                raise self._explain(error.__cause__) from None
            raise

    def _problems(self, tool: str, error: PydanticError) -> list[str]:
        """One clause for each argument that is wrong."""
        clauses: dict[str, str] = {}
        known = list(self._schemas[tool]["properties"])
        for problem in error.errors(include_url=False, include_input=False, include_context=False):
            argument = str(problem["loc"][0]) if problem["loc"] else ""
            rule = self._rules.get(f"{tool}.{argument}") or self._rules.get(argument)
            if argument not in known:
                clauses[argument] = f"{tool} has no argument {shown(argument)!r}; its arguments are {', '.join(known)}"
            elif problem["type"].startswith("missing"):
                clauses[argument] = f"{argument} is required and must be {rule}"
            else:
                clauses[argument] = f"{argument} must be {rule}"
        return list(clauses.values())


def internal_error(
    error: Exception, *, service: str, log: logging.Logger, cause: BaseException | None = None
) -> Unavailable:
    """The sentence for what nobody foresaw; the details go to the log, without the error's message, which may quote.

    `cause` is what the error is about, where a library wraps it.
    """
    reference = secrets.token_hex(4)
    kind = f"{type(cause or error).__module__}.{type(cause or error).__qualname__}"
    log.error("internal error %s: %s\n%s", reference, kind, "".join(format_tb(error.__traceback__)))
    return Unavailable(sentence=f"The {service} had an internal error (reference {reference}). Try again later.")


def shown(text: str, longest: int = 60) -> str:
    """A stranger's text, fit for one line and for any encoding."""
    return "".join(c if c.isprintable() else "?" for c in text[:longest])
