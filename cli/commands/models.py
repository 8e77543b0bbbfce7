from cli import terminal
from cli.services import environment, ollama, service_command


def run(*, check: bool) -> int:
    """Prints what `python -m backend models` finds, with the Ollama that `./todo up` would take."""
    variables = environment.load()
    options = ["--check"] if check else []
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
