"""A body costs the event loop little, whatever is in it."""

import time
from contextlib import suppress

import pytest

from backend.conversation.errors import InvalidRequest
from backend.doors.chatkit import body
from service.workers import ClientLimits
from tests import abuse
from tests.chatkit_client import JSON, ChatKit

CREATE = (
    b'{"type": "threads.create", "params": {"input": {"content": VALUE, "attachments": [], "inference_options": {}}}}'
)
PLACES = {
    "anywhere": abuse.body_of(b"/chatkit", b"VALUE"),
    "metadata": b'{"type": "threads.list", "params": {}, "metadata": {"x": VALUE}}',
    "parts": CREATE,
    "the request": b"VALUE",
}
SIZE = ClientLimits().limit_request_bytes
SHAPES = {
    **abuse.values(SIZE),
    "empty texts": b"[" + b'"",' * (SIZE // 3) + b'"\\u0000"]',
    "numbers of 100 digits": b"[" + (b"1" * 100 + b",") * 900 + b"1]",
    "a list for each allowed value": b"[" + b"[]," * 490 + b'"' + b"\\u00e9" * (SIZE // 6) + b'"]',
}
ALLOWED = 0.05
"""Seconds of the event loop's time that one request may take."""


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_body_is_read_before_anybody_notices(shape: str, place: str) -> None:
    sent = PLACES[place].replace(b"VALUE", SHAPES[shape])
    took = []
    for _ in range(3):
        began = time.process_time()
        with suppress(InvalidRequest):
            body.parse(sent)
        took.append(time.process_time() - began)
    assert min(took) < ALLOWED


@pytest.mark.parametrize(
    ("shape", "sentence"),
    [
        ("numbers", "The body has more than 1,000 values: send less at once."),
        ("empty lists", "The body has more than 1,000 values: send less at once."),
        ("digits", "The body has a number of more than 100 digits: send a shorter one."),
    ],
)
async def test_what_takes_long_to_parse_is_refused_in_words(chat: ChatKit, shape: str, sentence: str) -> None:
    sent = abuse.body_of(b"/chatkit", abuse.values(100_000)[shape])
    response = await chat.http.post("/chatkit", content=sent, headers=JSON)
    assert response.status_code == 400
    assert response.json() == {"error": sentence}
