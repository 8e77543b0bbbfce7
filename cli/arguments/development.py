"""How good and how fast this code is."""

import argparse
from pathlib import Path

from cli.arguments import values
from cli.arguments.command import Commands, add


def add_all(commands: Commands) -> None:
    bench = add(
        commands,
        "bench",
        "measure how fast it is",
        "Measures the services on a temporary PostgreSQL with an instant model, and compares them with the Agents SDK.",
    )
    bench.add_argument("--full", action="store_true", help="measure longer, for more stable figures")
    bench.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to this file")
    bench.add_argument(
        "--load", action="store_true", help="measure instead how much load it can take, and what happens beyond that"
    )
    seconds = "with --load: how many seconds each load lasts (300)"
    bench.add_argument("--seconds", type=values.amount, metavar="N", help=seconds)
    soak = "run half of that load for so long, and check that nothing grows"
    bench.add_argument("--soak", type=values.amount, metavar="MINUTES", help=soak)
    _add_eval(commands)
    add(
        commands,
        "audit",
        "check the locked packages for known vulnerabilities",
        "Checks the packages of the requirements locks for this platform against a public list of known "
        "vulnerabilities, and those of the tests' npm locks if npm is installed. Needs the internet.",
    )
    test = add(
        commands,
        "test",
        "check the code and run the tests",
        "Checks the code and runs the tests on a temporary PostgreSQL, or in separate databases on the server of "
        "DATABASE_URL. Further arguments go to pytest.",
        usage="todo test [-h] [--all | --extended] [pytest arguments]",
    )
    scope = test.add_mutually_exclusive_group()
    test.set_defaults(scope="quick")
    for name, help_text in (
        ("all", "also run pyright and the slow tests, as CI does"),
        ("extended", "run only the tests that --all leaves out: measurements and long runs, for a release"),
    ):
        scope.add_argument(f"--{name}", action="store_const", dest="scope", const=name, help=help_text)


def check(given: argparse.Namespace) -> str | None:
    """What is wrong with what was asked for, if anything is."""
    if given.command != "bench":
        return None
    if given.seconds is not None and not given.load:
        return "bench --seconds needs --load"
    kinds = [f"--{kind}" for kind in ("load", "soak", "full") if getattr(given, kind)]
    alone = {"--load", "--soak"} & set(kinds)
    return f"bench takes one of {' and '.join(kinds)}" if alone and len(kinds) > 1 else None


def _add_eval(commands: Commands) -> None:
    evaluation = add(
        commands,
        "eval",
        "measure how often the model changes the list correctly",
        "Sends more than a hundred messages to the services, on a temporary PostgreSQL and with the model in your "
        "settings, and checks how each changed the list. Exit status 1: the model claimed something that it had not "
        "done, or obeyed an instruction in a task.",
    )
    evaluation.add_argument("--quick", action="store_true", help="thirty cases, once each")
    evaluation.add_argument(
        "--only", action="append", default=[], metavar="TAG", help="only cases with this tag or id; can be repeated"
    )
    evaluation.add_argument(
        "--repeat", type=values.count, metavar="K", help="how often to try each case (3, with --quick 1)"
    )
    evaluation.add_argument("--json", type=Path, metavar="FILE", help="write each result to this file as it arrives")
    evaluation.add_argument(
        "--resume", type=Path, metavar="FILE", help="continue a run whose results --json wrote to this file"
    )
    allowed = "how many requests a minute the provider allows"
    evaluation.add_argument("--limit-rpm", type=values.amount, metavar="N", help=allowed)
    for name, whose in (("in", "reads"), ("out", "writes")):
        priced = f"the price of a million tokens that the model {whose}"
        evaluation.add_argument(f"--price-{name}", type=values.amount, metavar="N", help=priced)
    evaluation.add_argument(
        "--compare", type=Path, nargs=2, metavar=("FILE", "OTHER"), help="compare two saved results instead of running"
    )
