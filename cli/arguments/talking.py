"""The models, the conversation in a terminal, and the tools of other MCP servers."""

import argparse

from cli.arguments import values
from cli.arguments.command import Commands, Parser, add, add_data_dir


def add_all(commands: Commands) -> None:
    models = add(
        commands,
        "models",
        "show what the model providers that are set up offer",
        "Shows what each model provider that has a key, or is on this machine, offers, and which model would answer. "
        "Each is sent its own key and nothing else.",
    )
    models.add_argument("--check", action="store_true", help="have the model of each call a tool once instead")
    _add_chat(commands)
    _add_mcp(commands)


def check(given: argparse.Namespace) -> str | None:
    """What is wrong with what was asked about other MCP servers."""
    if given.command != "mcp":
        return None
    if given.action == "list":
        return "mcp list takes nothing more" if given.server else None
    if given.server is None:
        return f"mcp {given.action} needs the name of a server: ./todo mcp list shows them"
    return "mcp test takes one server and nothing more" if given.action == "test" and given.tools else None


def _add_chat(commands: Commands) -> None:
    chat = add(
        commands,
        "chat",
        "talk to the assistant in this terminal",
        "The conversations of the page in this terminal. With --exec, or text on stdin, one message is answered: the "
        "answer is on stdout, all else on stderr. Status 0: answered, 1: failed, 2: no server answers, 3: consent is "
        "needed, 130: stopped. TODO_TOKEN is what signs in.",
    )
    chat.add_argument("--exec", dest="execute", metavar="TEXT", help="say this, and end with the answer")
    chat.add_argument(
        "--json", action="store_true", help="with --exec or text on stdin: the answer's events as JSON, one a line"
    )
    _add_thread(chat)
    chat.add_argument("--model", metavar="NAME", help="which model answers, of those that are offered (LLM_MODELS)")
    warmth = "how freely it writes; without it, as the server is set"
    chat.add_argument("--temp", type=values.temperature, metavar="0-2", help=warmth)
    chat.add_argument("--url", type=values.url, help="where the assistant is (what ./todo up serves here)")
    chat.add_argument("--debug", action="store_true", help="show every event")
    add_data_dir(chat)


def _add_thread(chat: Parser) -> None:
    """Which conversation: the last that is said of it holds."""
    named = "go on with this conversation, by its id or name"
    chat.add_argument("--thread", type=values.chat, metavar="ID", help=named, default=None)
    for flag, thread, does in (
        ("--continue", "", "go on with the one that was used last"),
        ("--new", None, "begin a new one, as without any of the three"),
    ):
        chat.add_argument(flag, dest="thread", action="store_const", const=thread, default=None, help=does)


def _add_mcp(commands: Commands) -> None:
    mcp = add(
        commands,
        "mcp",
        "show other MCP servers, and approve their tools for the agents",
        "Shows the MCP servers of mcp.json and what their tools say of themselves, approves tools, or tests whether a "
        "server answers. Agents are offered a tool that is approved until what it says changes.",
    )
    mcp.add_argument("action", choices=("list", "approve", "test"))
    mcp.add_argument("server", nargs="?", metavar="SERVER", help="which one, to approve or test")
    mcp.add_argument(
        "tools", nargs="*", default=[], metavar="TOOL", help="to approve; without it all that the server has"
    )
    add_data_dir(mcp)
