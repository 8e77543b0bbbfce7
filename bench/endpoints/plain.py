"""What a tool call is compared to: a plain FastAPI endpoint with the same statements in the same transaction."""

import json
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from pydantic import BaseModel, Field

from bench.endpoints.statements import ADD
from common.database import Database


class NewTask(BaseModel):
    title: str = Field(min_length=1, max_length=200)
    description: str = Field(default="", max_length=4000)


class Task(NewTask):
    id: int
    status: str
    created_at: str
    updated_at: str
    completed_at: str | None


# with psycopg's names of variables
_ADD: Any = re.sub(r"(?<!:):(\w+)", r"%(\1)s", ADD)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with Database(os.environ["DATABASE_URL"]) as app.state.database:
        yield


app = FastAPI(lifespan=lifespan)


@app.get("/health")
async def health() -> dict[str, str]:
    return {"status": "ok"}


@app.post("/tasks/{owner}")
async def add_task(owner: str, new: NewTask, request: Request) -> Task:
    database: Database = request.app.state.database
    values = {"owner": owner, "arguments": json.dumps(new.model_dump()), **new.model_dump()}
    async with database.transaction(owner) as tx:
        added = await tx.execute(_ADD, **values)
    [row] = await added.fetchall()
    return Task.model_validate(row["after"])


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]), access_log=False, log_level="warning")
