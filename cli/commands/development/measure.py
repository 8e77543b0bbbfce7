"""`./todo bench` and `./todo eval`, which read their arguments themselves."""

import argparse
import os
import sys

from cli.arguments import Commands, add_command
from cli.data_dir import CHECKOUT
from cli.services import environment


def add(commands: Commands) -> None:
    for name, run, short in (
        ("bench", run_bench, "measure how fast it is"),
        ("eval", run_eval, "measure how often the model changes the list correctly"),
    ):
        parser = add_command(commands, name, run, short, "", has_data_dir=False, add_help=False)
        parser.set_defaults(takes_more=True)


def run_bench(arguments: argparse.Namespace) -> int:
    return _run("bench", arguments.more, dict(os.environ))


def run_eval(arguments: argparse.Namespace) -> int:
    """Measures the model that `./todo up` would take."""
    from cli.services import ollama

    variables, _ = ollama.choose_model(environment.load())
    if environment.needs_offline_model(variables):
        variables["LLM_PROVIDER"] = environment.OFFLINE
    return _run("evals", arguments.more, variables)


def _run(module: str, arguments: list[str], variables: dict[str, str]) -> int:
    variables["PYTHONPATH"] = str(CHECKOUT)
    os.execve(sys.executable, [sys.executable, "-P", "-m", module, *arguments], variables)  # noqa: S606 - no shell
