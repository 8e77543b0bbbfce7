"""What our rooms rely on inside the libraries that are pinned: lists that are complete.

A test of the files beside this one, or of tests/service/workers/test_connection.py, that fails after an upgrade names
the place in our code that has to follow; a coupling that comes or goes changes the lists.
"""

import ast
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

ROOMS = ("backend", "client", "mcp_server", "migrations", "offline_model", "service")
OVERRIDDEN = {
    "backend.agents.assistant._Assistant": {"get_mcp_tools"},
    "backend.conversation.rows._Converter": {
        "user_message_to_input",
        "assistant_message_to_input",
        "hidden_context_to_input",
    },
    "backend.agents.team._Worker": {"get_mcp_tools"},
    "backend.conversation.store_adapter.PostgresStore": {
        "generate_thread_id",
        "generate_item_id",
        "load_thread",
        "save_thread",
        "load_threads",
        "delete_thread",
        "load_thread_items",
        "load_item",
        "add_thread_item",
        "save_item",
        "delete_thread_item",
        "save_attachment",
        "load_attachment",
        "delete_attachment",
    },
    "backend.doors.chatkit.server.TodoChatServer": {"respond", "add_feedback", "sync_action"},
    "backend.doors.page._Files": {"file_response"},
    "backend.model.chat_model.ChatModel": {"get_response", "stream_response"},
    "backend.model.client._PlainClient": {"default_headers"},
    "backend.tools.connection.Connection": {
        "name",
        "connect",
        "cleanup",
        "list_tools",
        "call_tool",
        "list_prompts",
        "get_prompt",
    },
    "backend.tools.resending.ResendingClient": {"send"},
    "backend.tools.tasks.tools.CallerToken": {"auth_flow"},
    "backend.tools.tasks.tools.TaskTools": {"call_tool", "connect"},
    "backend.tools.workspace.tools.WorkspaceTools": {"call_tool", "connect"},
    "backend.turn.delegated.leading._Hooks": {"on_llm_start", "on_llm_end", "on_tool_start", "on_tool_end"},
    "backend.turn.recorder.Recorder": {"on_llm_start", "on_llm_end", "on_tool_start", "on_tool_end"},
    "backend.turn.delegated.leading._Chosen": {"stream_response", "get_response", "get_retry_advice"},
    "backend.turn.speech.Overheard": {"stream_response", "get_response", "get_retry_advice"},
    "service.tool_server.refusals.Refusals": {"on_call_tool"},
    "service.tool_server.reports.Reported": {"on_call_tool"},
    "service.tool_server.running_calls.RunningCalls": {"on_call_tool"},
    "service.tool_server.identity.Verifier": {"verify_token"},
    "service.tool_server.wire.Announced": {"on_initialize", "on_discover"},
    "service.tool_server.refusals.FriendlyErrors": {"on_call_tool"},
    "service.tool_server.paced.Paced": {"on_call_tool"},
    "service.tool_server.together.Together": {"on_call_tool"},
    "service.database.transactions._Session": {"connection"},
    "service.workers.connection._Flow": {"resume_reading"},
    "service.workers.connection.Connection": {
        "connection_made",
        "connection_lost",
        "data_received",
        "on_message_begin",
        "on_url",
        "on_header",
        "on_headers_complete",
        "on_body",
        "on_message_complete",
        "on_response_complete",
    },
    "service.workers.server.Server": {"startup", "main_loop", "on_tick", "handle_exit", "shutdown"},
}
PRIVATE = {
    "backend.doors.chatkit.server": {"_process_non_streaming"},
    "service.tool_server.app": {"_mcp_server"},
    "service.workers.connection": {"_unset_keepalive_if_required"},
}
OF_NAMED_TUPLES = {"_asdict", "_fields", "_make", "_replace"}  # public, whatever they begin with


def modules() -> Iterator[ModuleType]:
    for room in ROOMS:
        yield (package := importlib.import_module(room))
        for found in pkgutil.walk_packages(package.__path__, f"{room}."):
            if not found.name.endswith(("__main__", "migrations.env")):  # which do their work when they are imported
                yield importlib.import_module(found.name)


def overridden(cls: type) -> set[str]:
    """The methods and properties that a library calls by these names."""
    theirs = [base for base in cls.__mro__[1:] if not is_ours(base) and base.__module__ not in sys.stdlib_module_names]
    methods = {name for name, value in vars(cls).items() if inspect.isroutine(value) or isinstance(value, property)}
    return {name for name in methods if not name.startswith("__") and any(name in vars(base) for base in theirs)}


def is_ours(cls: type) -> bool:
    return cls.__module__.partition(".")[0] in ROOMS


def test_the_methods_that_libraries_call_are_those_they_know() -> None:
    """A hook that a library renames is an override no more, and would never be called."""
    found = {
        f"{cls.__module__}.{cls.__name__}": methods
        for module in modules()
        for cls in vars(module).values()
        if inspect.isclass(cls) and cls.__module__ == module.__name__ and (methods := overridden(cls))
    }
    assert found == OVERRIDDEN


def private_names(source: str) -> set[str]:
    """What a module reads or imports that begins with an underscore, and is nothing of its own."""
    read, own = set[str](), set[str]()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(attr=name, ctx=ctx):
                (own if isinstance(ctx, ast.Store) else read).add(name)
            case ast.Name(id=name, ctx=ast.Store()) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                own.add(name)
            case ast.ImportFrom(module=str(module), names=names):
                read |= {*module.split("."), *(alias.name for alias in names)}
            case _:
                pass
    return {name for name in read - own - OF_NAMED_TUPLES if name.startswith("_") and not name.startswith("__")}


def test_the_private_names_that_are_used_are_listed() -> None:
    files = {module.__name__: module.__file__ for module in modules() if module.__file__}
    read = {name: private_names(Path(file).read_text()) for name, file in files.items()}
    assert {name: private for name, private in read.items() if private} == PRIVATE
