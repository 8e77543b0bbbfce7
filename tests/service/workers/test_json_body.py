import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.workers import json_body

MANY = "The body has more than 1,000 values: send less at once."
LONG = "The body has a number of more than 100 digits: send a shorter one."
SIZE = 128 * 1024

REFUSED = {
    "numbers": ("[" + "1," * 1_000 + "1]", MANY),
    "lists": ("[]" * 1_001, MANY),
    "depth": ("[" * 1_001, MANY),
    "objects": ("[" + "{}," * 1_000 + "{}]", MANY),
    "names": ("{" + ",".join(f'"{n}":1' for n in range(1_001)) + "}", MANY),
    "names and texts": ("{" + ",".join(['"":""'] * 1_001) + "}", MANY),
    "texts": ("[" + '"",' * 20_000 + '""]', MANY),
    "after a text that ends with a backslash": ('["\\\\",' + "1," * 1_000 + '"\\\\"]', MANY),
    "after a quote in a text": ('["\\"",' + "1," * 1_000 + '"\\""]', MANY),
    "between texts": ("[" + '"\\\\\\"",1,' * 600 + "1]", MANY),
    "a long number": ("[" + "9" * 101 + "]", LONG),
    "a long fraction": ("[0." + "1" * 101 + "]", LONG),
    "a long number after a text": ('["' + "1" * 200 + '",' + "1" * 101 + "]", LONG),
    "another encoding": (
        json.dumps(["milk"]).encode("utf-16-le").decode(),
        "The body is not JSON in UTF-8: it has a NUL byte.",
    ),
}


@pytest.mark.parametrize(("body", "sentence"), REFUSED.values(), ids=REFUSED)
def test_what_takes_long_to_parse_is_refused(body: str, sentence: str) -> None:
    assert json_body.problem(body.encode()) == sentence


TAKEN: list[Any] = [
    {},
    "x" * SIZE,
    "[{," * SIZE,
    '"' * SIZE,
    "\\" * SIZE,
    "7" * SIZE,
    ["[,{" * 1_000, *range(990)],
    {'",' * 20 + str(number): '",["\\' * 20 for number in range(900)},
    [2**63, -(2**63), 1.7976931348623157e308, int("9" * 100)],
]


@pytest.mark.parametrize("value", TAKEN)
@pytest.mark.parametrize("ensure_ascii", [True, False])
def test_what_texts_hold_does_not_count(value: Any, ensure_ascii: bool) -> None:
    assert json_body.problem(json.dumps(value, ensure_ascii=ensure_ascii).encode()) is None


def count(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(count, inner))


VALUES = st.recursive(
    st.none() | st.integers(-9, 9) | st.text('\\"[{,1é', max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('\\"[{,1', max_size=3), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES, st.booleans())
def test_the_values_of_any_json_are_counted(value: Any, ensure_ascii: bool) -> None:
    more = json_body.MOST_VALUES - 2 * count(value) - 4
    body = json.dumps([value, *[",,"] * more], ensure_ascii=ensure_ascii).encode()
    assert json_body.problem(body) is None
    body = json.dumps([value, *[",,"] * json_body.MOST_VALUES], ensure_ascii=ensure_ascii).encode()
    assert json_body.problem(body) == MANY


WORST = {
    "text": b"x" * SIZE,
    "backslashes": b'["' + b"," * 1_001 + b"\\" * SIZE + b'"]',
    "quotes": b'["' + b"," * 1_001 + b'\\"' * (SIZE // 2) + b'"]',
    "both": b'["' + b"," * 1_001 + b'\\\\\\"' * (SIZE // 4) + b'"]',
    "texts": b"[" + b'"",' * (SIZE // 3),
    "commas": b'["' + b"," * SIZE + b'",' + b'"",' * 990 + b"1]",
    "numbers": b"[" + (b"1" * 100 + b",") * (SIZE // 101) + b"1]",
    "zeros": b'["' + b"0" * SIZE + b'"]',
    "nearly long": b'["' + (b"0" * 100 + b"x") * (SIZE // 101) + b'"]',
    "lists": b"[]," * (SIZE // 3),
}


@pytest.mark.parametrize("name", WORST)
def test_the_look_takes_next_to_no_time(name: str) -> None:
    took = []
    for _ in range(5):
        began = time.process_time()
        json_body.problem(WORST[name])
        took.append(time.process_time() - began)
    assert min(took) < 0.004  # seconds: a quarter of it on a machine that is not shared
