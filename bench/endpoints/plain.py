"""What a tool call is compared to: a plain FastAPI endpoint with the same statements in the same transaction."""

import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI, Request
from pydantic import BaseModel, Field
from sqlalchemy import text

from bench.endpoints.statements import ADD
from service.database import create_engine, transaction


class NewTask(BaseModel):
    title: str = Field(min_length=1, max_length=200)
    description: str = Field(default="", max_length=4000)


class Task(NewTask):
    id: int
    status: str
    created_at: str
    updated_at: str
    completed_at: str | None


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    app.state.engine = create_engine(os.environ["DATABASE_URL"])
    yield
    await app.state.engine.dispose()


app = FastAPI(lifespan=lifespan)
add = text(ADD)


@app.get("/health")
async def health() -> dict[str, str]:
    return {"status": "ok"}


@app.post("/tasks/{owner}")
async def add_task(owner: str, new: NewTask, request: Request) -> Task:
    async with transaction(request.app.state.engine, owner) as session:
        connection = await session.connection()
        values = {"owner": owner, "arguments": json.dumps(new.model_dump()), **new.model_dump()}
        row = (await connection.execute(add, values)).one()
    return Task.model_validate(row.after)


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]), access_log=False, log_level="warning")
