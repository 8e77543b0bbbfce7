"""Says all cases to the services on the empty, migrated database at DATABASE_URL; `./todo eval` starts it.

Judges by what the administrator at MIGRATION_DATABASE_URL reads there. The model is the one that the environment sets.

Writes lines of JSON: how far it is, each trial, at last the report.
"""

import argparse
import asyncio
import json
import os
import platform
import sys
import time
from itertools import groupby
from pathlib import Path
from typing import Any

import psycopg

from bench.processes import count_cores
from evals import case, figures, trial
from evals.case import Case
from evals.compared import compared
from evals.request_limit import MINUTE, RequestLimit
from evals.rows import Connection
from evals.stage import Stage, offline_model, set_up

AT_ONCE = 4
TRIES_OF_A_TRIAL = 3  # where the provider lets only so much through
FRESH_SECONDS = 600  # after which the services begin again at their `now`: in some cases it is late in the evening
QUICK_REPEAT, REPEAT = 1, 3
Wanted = tuple[Case, int]


class Evaluation:
    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._request_limit = RequestLimit(arguments.limit_rpm)
        self._began = time.monotonic()
        cases = case.select_cases(case.read_cases(), only=arguments.only, quick=arguments.quick)
        if not cases:
            raise SystemExit(f"No case has a tag or an id of {', '.join(arguments.only)}.")
        done = json.loads(arguments.done.read_text()) if arguments.done else {"model": None, "trials": []}
        self._model = done["model"]
        self._trials: list[dict[str, Any]] = done["trials"]
        had = {(one["case"], one["try"]) for one in self._trials}
        repeat = arguments.repeat or (QUICK_REPEAT if arguments.quick else REPEAT)
        wanted = [(one, number) for number in range(1, repeat + 1) for one in cases]
        self._wanted = [(one, number) for one, number in wanted if (one.id, number) not in had]
        self._number = len(wanted)

    async def run(self) -> None:
        self._report_progress("starting")
        admin_url = os.environ["MIGRATION_DATABASE_URL"]
        with psycopg.connect(admin_url, autocommit=True) as connection:
            async with offline_model(self._arguments.work, os.environ) as model:
                for now, of_now in groupby(sorted(self._wanted, key=_now), key=_now):
                    left = list(of_now)[::-1]
                    while left:
                        async with set_up(self._arguments.work, os.environ["DATABASE_URL"], now, model) as stage:
                            await self._check_model(stage)
                            await self._run_cases(left, stage, connection)
        self._report()

    async def _run_cases(self, left: list[Wanted], stage: Stage, connection: Connection) -> None:
        """Until nothing is left, or the clock has gone on too far."""
        until = time.monotonic() + FRESH_SECONDS

        async def work() -> None:
            while left and time.monotonic() < until:
                one, number = left.pop()
                result = await self._try_case(one, number, stage, connection)
                self._trials.append(result)
                _write_line(trial=result)
                self._report_progress(one.id)

        async with asyncio.TaskGroup() as group:
            for _ in range(1 if self._arguments.limit_rpm else AT_ONCE):
                group.create_task(work())

    async def _try_case(self, one: Case, number: int, stage: Stage, connection: Connection) -> dict[str, Any]:
        name = f"eval-{one.id}-{number}"
        result = await trial.run(one, name, stage, connection, self._request_limit)
        for attempt in range(2, TRIES_OF_A_TRIAL + 1 if self._arguments.limit_rpm else 2):
            if result["passing"]:
                await asyncio.sleep(MINUTE)
                result = await trial.run(one, f"{name}-{attempt}", stage, connection, self._request_limit)
        return {**result, "try": number}

    async def _check_model(self, stage: Stage) -> None:
        model = await stage.model()
        if self._model not in (None, model):
            raise SystemExit(f"The results to go on with are of {self._model['name']}, and this is {model['name']}.")
        self._model = model
        _write_line(model=model)

    def _report_progress(self, doing: str) -> None:
        right = sum(one["outcome"] == "right" for one in self._trials)
        share = min(1.0, len(self._trials) / self._number)
        _write_line(doing=f"{right} of {len(self._trials)} right, of {self._number}: {doing}", share=share)

    def _report(self) -> None:
        files = list(dict.fromkeys(one["tags"][0] for one in self._trials))
        prices = {"price_in": self._arguments.price_in, "price_out": self._arguments.price_out}
        _write_line(
            report={
                "model": self._model,
                "machine": {"cores": count_cores(), "python": platform.python_version()},
                "seconds": round(time.monotonic() - self._began, 1),
                **figures.report(self._trials, files, **prices),
            }
        )


def _now(wanted: Wanted) -> Any:
    return wanted[0].now


def _write_line(**line: Any) -> None:
    sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def main(arguments: argparse.Namespace) -> None:
    if arguments.compare:
        first, second = (json.loads(file.read_text()) for file in arguments.compare)
        _write_line(report=compared(first, second))
    else:
        asyncio.run(Evaluation(arguments).run())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m evals")
    parser.add_argument("--work", type=Path, help="a directory for logs")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--repeat", type=int)
    parser.add_argument("--done", type=Path, help="results to go on with")
    parser.add_argument("--limit-rpm", type=float)
    parser.add_argument("--price-in", type=float)
    parser.add_argument("--price-out", type=float)
    parser.add_argument("--compare", type=Path, nargs=2)
    main(parser.parse_args())
