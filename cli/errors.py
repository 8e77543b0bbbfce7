class CliError(Exception):
    """One sentence for the user at the terminal, and the exit status of the command."""

    status = 1
