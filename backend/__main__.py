import sys

from common import commands

if __name__ == "__main__":
    commands.main("backend", sys.argv[1:])
