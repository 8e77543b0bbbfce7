import sys

from common import commands

if __name__ == "__main__":
    commands.run_command("backend", sys.argv[1:])
