import argparse

from cli import terminal
from cli.arguments import Commands, add_command
from cli.services import environment, service_command


def add(commands: Commands) -> None:
    parser = add_command(
        commands,
        "models",
        run,
        "show the models of your providers",
        "Shows the models of each provider that has a key or runs on this machine, and the model that would answer. "
        "Each provider receives only its own key.",
        has_data_dir=False,
    )
    checks = "instead, test whether the model of each provider can call a tool"
    parser.add_argument("--check", action="store_true", help=checks)


def run(arguments: argparse.Namespace) -> int:
    """Prints what `python -m backend models` finds, with the Ollama that `./todo up` would take."""
    from cli.services import ollama

    variables = environment.load()
    options = ["--check"] if arguments.check else []
    if ollama.is_wanted(variables):
        found = ollama.find(variables)
        variables |= found.settings if found and found.model else {}
    else:
        # LLM_MODEL is another provider's then.
        found = ollama.find({name: value for name, value in variables.items() if name != "LLM_MODEL"})
        variables |= ollama.base_url(variables)
        options += ["--ollama", f"{found.url}/v1", found.model] if found and found.model else []
    if found and found.note:
        terminal.notice(found.note + ".")
    return service_command.run("backend", "models", *options, variables=variables)
