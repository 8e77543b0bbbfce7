"""What may stand behind an argument: its value, or a sentence about what is wrong with it."""

import argparse
import math
import re
import unicodedata
from urllib.parse import urlsplit

from common import child_environment

IMPORTED = ("todoist", "todo.txt", "export")
LOGS = (*(part.replace("_", "-") for part in child_environment.PARTS), "postgres")


def service(text: str) -> str:
    if text not in LOGS:
        raise argparse.ArgumentTypeError(f"there is no service {text}; choose one of {', '.join(LOGS)}")
    return text


def chat(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,100}", text) or not text.strip("."):
        raise argparse.ArgumentTypeError(f"{text!r} is not a valid id or name of a conversation")
    return text


def name(text: str) -> str:
    invisible = ("Cc", "Cs", "Zl", "Zp")  # control characters, line ends, halves of a pair
    if not text.strip() or any(unicodedata.category(character) in invisible for character in text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a valid user name")
    return text


def count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= 100):
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 1 to 100")
    return int(text)


def amount(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return number


def temperature(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number <= 2:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 0 to 2")
    return number


def url(text: str) -> str:
    try:
        parts = urlsplit(text)
        good = parts.scheme in ("http", "https") and parts.hostname and not parts.query and not parts.fragment
        _ = parts.port
    except ValueError:
        good = False
    if not good:
        raise argparse.ArgumentTypeError(f"{text} is not the address of the page, such as http://localhost:8000")
    return text.rstrip("/")


def port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65536):
        raise argparse.ArgumentTypeError(f"{text} is not a port from 1 to 65535")
    return int(text)
