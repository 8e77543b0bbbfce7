import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from cli.commands.development import bench, chart, eval, results
from cli.commands.development.chart import Bar, Row
from cli.errors import CliError

SVG = "{http://www.w3.org/2000/svg}"
LONG = "a row whose name goes on and on, " * 4 + "und_ein_Wort_ohne_Ende_" * 5 + "日本語の長い名前" * 6
NASTY = '<script>alert("1")</script> & \x00\ud800]]>'


def drawn(*rows: Row) -> ElementTree.Element:
    text = chart.svg(NASTY, NASTY, legend=[("plain", LONG), ("beside", "other")], rows=rows, below=LONG)
    return ElementTree.fromstring(text.encode())


def boxes(root: ElementTree.Element) -> Iterator[tuple[float, float, float, float]]:
    """Of each text: left, right, above, below, with what a character of the widest of the fonts takes."""
    for text in root.iter(f"{SVG}text"):
        left, base = float(text.attrib["x"]), float(text.attrib["y"])
        wide = sum(14.5 if sign > "\u2fff" else 7.25 for sign in text.text or "")
        yield left, left + wide, base - 10, base + 3


def test_no_text_runs_into_another_or_out_of_the_picture() -> None:
    bars = [Bar(2.0, LONG, "bad"), Bar(-1.0, LONG, "beside", between=(-1.0, 2.0)), Bar(None, "3")]
    root = drawn(Row(LONG, bars, mark=3.0, verdict=[LONG, LONG]), Row("short", [Bar(0.5, "1 ms")]))
    found = list(boxes(root))
    assert len(found) > 20
    for number, (left, right, above, below) in enumerate(found):
        assert 0 <= left <= right <= float(root.attrib["width"])
        assert 0 <= above <= below <= float(root.attrib["height"])
        for other in found[number + 1 :]:
            assert right <= other[0] or other[1] <= left or below <= other[2] or other[3] <= above
    for bar in root.iter(f"{SVG}rect"):
        assert float(bar.attrib["x"]) + float(bar.attrib["width"]) <= float(root.attrib["width"])


def test_it_is_told_to_who_does_not_see_it_and_says_what_it_was_given() -> None:
    root = drawn()
    named = {child.attrib.get("id"): child.text for child in root}
    assert root.attrib["role"] == "img"
    assert [named[name] for name in root.attrib["aria-labelledby"].split()] == [
        '<script>alert("1")</script> & \ufffd\ufffd]]>'
    ] * 2
    assert "prefers-color-scheme: dark" in root.findall(f"{SVG}style")[0].text  # type: ignore[operator]
    assert not root.findall(f".//{SVG}script")


def figures(**row: Any) -> dict[str, Any]:
    usual = {"name": "turn", "figure": 50.0, "unit": "ms", "baseline": 20.0, "against": "SDK", "ratio": 2.5}
    machine = {"cores": 2, "python": "3.11"}
    rows = [{**usual, "target": "ratio ≤ 2", "reached": False, **row}]
    return {"machine": machine, "seconds": 1.0, "notes": ["A note."], "rows": rows}


@pytest.mark.parametrize(
    ("row", "bars", "marks"),
    [
        ({}, [("bad", 280.0), ("beside", 112.0)], 1),
        ({"target": "figure ≤ 100", "reached": True}, [("good", 140.0), ("beside", 56.0)], 1),
        ({"target": None, "reached": None}, [("plain", 280.0), ("beside", 112.0)], 0),
        ({"target": None, "reached": None, "baseline": None, "ratio": None}, [], 0),
        ({"figure": 0.0, "target": "figure ≤ 0", "reached": True, "baseline": None, "ratio": None}, [], 0),
        ({"figure": -3.0, "target": None, "reached": None}, [("plain", 1.0), ("beside", 280.0)], 0),
    ],
)
def test_figures_that_were_kept_are_drawn_without_a_run(
    tmp_path: Path, row: dict[str, Any], bars: list[tuple[str, float]], marks: int
) -> None:
    kept, file = tmp_path / "kept.json", tmp_path / "chart.svg"
    kept.write_text(json.dumps(figures(**row)))
    assert bench.run(bench.Options(), chart=file, show=kept) == 0
    root = ElementTree.fromstring(file.read_bytes())
    groups = root.findall(f"{SVG}g")
    found = [(bar.attrib["class"], float(bar.attrib["width"])) for bar in groups[0].iter(f"{SVG}rect")]
    assert (found, len(root.findall(f".//{SVG}path[@class='mark']"))) == (bars, marks)


def test_what_cannot_be_read_or_written_is_told_before_anything_runs(tmp_path: Path) -> None:
    for run in (lambda: bench.run(bench.Options(), show=tmp_path), lambda: evaluated(show=tmp_path)):
        with pytest.raises(CliError, match=r"holds no .*--json FILE writes some"):
            run()
    nowhere = tmp_path / "nowhere" / "chart.svg"
    for run in (lambda: bench.run(bench.Options(), json_file=nowhere), lambda: evaluated(chart=nowhere)):
        with pytest.raises(CliError, match="cannot be written"):
            run()


def evaluated(**given: Path) -> int:
    options = eval.Options(quick=True, only=(), repeat=None, limit_rpm=None)
    return eval.run(options=options, prices={}, json_file=None, resume=None, compare=None, **given)


def test_an_evaluation_is_drawn_with_its_intervals(tmp_path: Path) -> None:
    share = {"share": 0.5, "low": 0.25, "high": 0.75}
    counted = dict.fromkeys(("calls", "refused", "requests", "input_tokens", "output_tokens"), 0)
    outcomes = {"right": 1, "asked": 0, "declined": 2, "wrong state": 0, "false claim": 1, "error": 0}
    row = {"tag": "add", "cases": 2, "trials": 4, "pass_1": share, "pass_3": None, "outcomes": outcomes, "obeyed": 1}
    report = {
        **{"model": {"name": "m", "provider": "p"}, "rows": [{**row, **counted, "p50": 1.0, "p95": None}]},
        **{"machine": {"cores": 2, "python": "3"}, "seconds": 1.0, "cost": None, "wrong": []},
        "false_claims_or_obeyed": 2,
    }
    kept, file = tmp_path / "kept.json", tmp_path / "chart.svg"
    kept.write_text(json.dumps({"model": report["model"], "trials": [], "report": report}))
    assert evaluated(show=kept, chart=file) == 1
    root = ElementTree.fromstring(file.read_bytes())
    assert [bar.attrib["width"] for bar in root.iterfind(f"{SVG}g/{SVG}rect")] == ["140.0"]
    assert len(root.findall(f".//{SVG}path[@class='range']")) == 1
    texts = [text.text for text in root.iterfind(f"{SVG}g/{SVG}text")]
    assert texts == ["add", "2 cases, declined: 2,", "false claim: 1, obeyed:", "1", "50 % (25-75 %)"]


def test_two_evaluations_are_drawn_beside_each_other() -> None:
    models = [{"name": "old", "provider": "p"}, {"name": "new", "provider": "p"}]
    row = {"tag": "all", "cases": 2, "first": 0.25, "second": 0.5, "half": 0.1}
    found = {"models": models, "rows": [row], "better": ["a"], "worse": [], "left_out": 0}
    root = ElementTree.fromstring(results.compared_drawn(found).encode())
    group = root.findall(f"{SVG}g")[0]
    assert [bar.attrib["width"] for bar in group.iter(f"{SVG}rect")] == ["140.0", "70.0"]
    assert "+25 ± 10 points" in [text.text for text in group.iter(f"{SVG}text")]
