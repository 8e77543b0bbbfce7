"""The models, the conversation in a terminal, and the tools of other MCP servers."""

import argparse

from cli.arguments import values
from cli.arguments.command import Commands, Parser, add, add_data_dir


def add_all(commands: Commands) -> None:
    models = add(
        commands,
        "models",
        "show the models of your providers",
        "Shows the models of each provider that has a key or runs on this machine, and the model that would answer. "
        "Each provider receives only its own key.",
    )
    models.add_argument(
        "--check", action="store_true", help="instead, test whether the model of each provider can call a tool"
    )
    _add_chat(commands)
    _add_mcp(commands)


def check(given: argparse.Namespace) -> str | None:
    """What is wrong with what was asked about other MCP servers."""
    if given.command != "mcp":
        return None
    if given.action == "list":
        return "mcp list takes no further arguments" if given.server else None
    if given.server is None:
        return f"mcp {given.action} needs the name of a server; ./todo mcp list shows the names"
    return "mcp test takes one server and no further arguments" if given.action == "test" and given.tools else None


def _add_chat(commands: Commands) -> None:
    chat = add(
        commands,
        "chat",
        "talk to the assistant in this terminal",
        "Shows the conversations of the page in this terminal. With --exec, or text on stdin, it sends one message, or "
        "carries out one slash command, and prints the answer to stdout, all else to stderr. Exit status 0: answered, "
        "1: failed, 2: no server, 3: an approval is needed, 130: stopped. To sign in, set TODO_TOKEN.",
    )
    chat.add_argument("--exec", dest="execute", metavar="TEXT", help="send this message, print the answer and exit")
    chat.add_argument(
        "--json", action="store_true", help="with --exec or text on stdin: print the answer's events as lines of JSON"
    )
    chat.add_argument(
        "--yes", action="store_true", help="with --exec or text on stdin: approve whatever the assistant asks to do"
    )
    _add_thread(chat)
    chat.add_argument("--model", metavar="NAME", help="the model that answers, one of LLM_MODELS")
    warmth = "the temperature of the model (default: as set on the server)"
    chat.add_argument("--temp", type=values.temperature, metavar="0-2", help=warmth)
    chat.add_argument("--url", type=values.url, help="the address of the assistant (default: ./todo up here)")
    chat.add_argument("--debug", action="store_true", help="show every event")
    add_data_dir(chat)


def _add_thread(chat: Parser) -> None:
    """Which conversation: the last that is said of it holds."""
    named = "continue this conversation, by its id or name"
    chat.add_argument("--thread", type=values.chat, metavar="ID", help=named, default=None)
    for flag, thread, does in (
        ("--continue", "", "continue the conversation that was used last"),
        ("--new", None, "start a new conversation (the default)"),
    ):
        chat.add_argument(flag, dest="thread", action="store_const", const=thread, default=None, help=does)


def _add_mcp(commands: Commands) -> None:
    mcp = add(
        commands,
        "mcp",
        "show other MCP servers, and approve their tools for the agents",
        "Shows the MCP servers of mcp.json and the descriptions of their tools, approves tools, or tests whether a "
        "server answers. Agents can use an approved tool until its description changes.",
    )
    mcp.add_argument("action", choices=("list", "approve", "test"))
    mcp.add_argument("server", nargs="?", metavar="SERVER", help="the server to approve or test")
    mcp.add_argument(
        "tools", nargs="*", default=[], metavar="TOOL", help="the tools to approve; default: all tools of the server"
    )
    add_data_dir(mcp)
