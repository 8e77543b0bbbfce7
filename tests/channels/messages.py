"""Messages, and what must not be in a log."""

from typing import Any

import pytest

from backend.alerts.channels.channel import Notification

TITLE, BODY = "Call the clinic about the results", "Due at 15:00"
URL = "https://todo.example/?task=7"


def create_message(**changes: Any) -> Notification:
    values = {
        "key": "Zm9vYmFyYmF6cXV4Zm9vYmFy",
        "kind": "task",
        "title": TITLE,
        "body": BODY,
        "url": URL,
        "task": 7,
        "proof": "cHJvb2Y",
        "late": False,
        "actions": True,
    }
    return Notification(**{**values, **changes})


def assert_not_logged(caplog: pytest.LogCaptureFixture, *secrets: str) -> None:
    logged = "\n".join(f"{record.getMessage()} {record.__dict__} {record.exc_text}" for record in caplog.records)
    assert [secret for secret in (TITLE, BODY, URL, *secrets) if secret in logged] == []
