"""What a flood of equal lines writes, and that no text of a client looks like a line or moves a terminal's cursor."""

import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from common.telemetry import logs
from common.telemetry.logs import AT_ONCE, JsonFormatter, LimitedHandler, TextFormatter, fields

FLOOD = 100_000
ATTACK = "a\nERROR root: forged\r\x1b[2J\x9b31m\u202egnp\u2028b"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1_000.0]
    monkeypatch.setattr(logs.time, "monotonic", lambda: now[0])
    return now


@contextmanager
def logging_to(output: io.StringIO, formatter: logging.Formatter | None = None) -> Iterator[logging.Logger]:
    logger = logging.Logger("service")  # which is nobody's child
    handler = LimitedHandler(output)
    handler.setFormatter(formatter or TextFormatter())
    logger.addHandler(handler)
    yield logger
    handler.close()


def test_flood_of_equal_lines(clock: list[float]) -> None:
    """Whatever their arguments are."""
    output = io.StringIO()
    with logging_to(output) as logger:

        def reject(*reasons: object) -> None:
            for reason in reasons:
                logger.info("rejected a token: %s", reason)

        reject(*range(FLOOD))
        assert len(output.getvalue().splitlines()) == AT_ONCE
        clock[0] += 61
        reject("again")
        assert output.getvalue().endswith(f"rejected a token: again … and {FLOOD - AT_ONCE:,} more such lines\n")
        reject(*range(9))
        clock[0] += 61
        logger.info("something else")
        assert output.getvalue().endswith("INFO service: rejected a token: %s … and 9 more such lines\n")
        reject("the last")
    assert output.getvalue().endswith("INFO service: rejected a token: %s … and 1 more such line\n")
    assert len(output.getvalue().splitlines()) == AT_ONCE + 4


def test_a_pause_allows_as_many_again(clock: list[float]) -> None:
    output = io.StringIO()
    with logging_to(output) as logger:
        for _ in range(2):
            for _ in range(AT_ONCE):
                logger.warning("the disk is full")
            clock[0] += 60 * AT_ONCE
    assert len(output.getvalue().splitlines()) == 2 * AT_ONCE
    assert "more such" not in output.getvalue()


def test_other_kinds_are_written(clock: list[float]) -> None:
    """Another logger, level, statement, template or error; lines about a user's work are not limited."""
    output = io.StringIO()
    with logging_to(output) as logger:
        for _ in range(1_000):
            logger.info("the same")
        for level in (logging.WARNING, logging.ERROR):
            logger.log(level, "the same")
        logger.info("another")
        for error in (ValueError, KeyError):
            for _ in range(1_000):
                try:
                    raise error("text")
                except error:
                    logger.exception("request failed")
        for _ in range(100):
            logger.info("run ended", extra=fields(owner="alice"))
            logger.info("tool call", extra=fields(owner=None, outcome="refused"))
    written = output.getvalue()
    assert written.count("the same") == AT_ONCE + 2 + 1  # and what was left out at the end
    assert written.count("INFO service: another") == 1
    assert written.count("ValueError: text") == written.count("KeyError: 'text'") == AT_ONCE
    assert written.count("run ended") == 100
    assert written.count("tool call") == AT_ONCE + 1


def test_flood_of_what_clients_sent_as_the_template(clock: list[float]) -> None:
    """As libraries log it."""
    output = io.StringIO()
    with logging_to(output) as logger:
        for number in range(FLOOD):
            logger.warning(f"unknown method {number}")
    lines = output.getvalue().splitlines()
    assert len(lines) < 50
    assert lines[-1].endswith(f"… and {FLOOD - 2 * AT_ONCE:,} more such lines")


@pytest.mark.parametrize("place", ["argument", "template", "field", "error"])
def test_text_of_a_client_forges_nothing(place: str) -> None:
    for formatter in (TextFormatter(), JsonFormatter()):
        output = io.StringIO()
        with logging_to(output, formatter) as logger:
            match place:
                case "argument":
                    logger.warning("rejected %s", ATTACK)
                case "template":
                    logger.warning(f"rejected {ATTACK}")
                case "field":
                    logger.warning("rejected", extra=fields(route=ATTACK))
                case _:
                    try:
                        raise ValueError(ATTACK)
                    except ValueError:
                        logger.exception("rejected")
        first, *others = output.getvalue().removesuffix("\n").split("\n")
        assert all(line.startswith("    ") for line in others)
        assert all(c.isprintable() or c == "\n" for c in output.getvalue())
        if isinstance(formatter, JsonFormatter):
            assert not others
            values = json.loads(first).values()
            assert any(ATTACK in str(value) for value in values)
