class CliError(Exception):
    """One sentence for the person at the terminal; the command ends with exit code 1."""
