"""The AI SDK's chat and assistant-ui's decoder, in Node, as they come from their makers."""

import asyncio
import json
from pathlib import Path
from typing import Any

from tests.node_packages import MCP_CLIENTS, installed

FRONTENDS = Path(__file__).resolve().parents[3] / "frontends"


async def speak(base_url: str, *acts: dict[str, Any], token: str | None = None, **body: Any) -> list[dict[str, Any]]:
    """What a front end has after each act: `say`, `decide`, `regenerate`, `leave`."""
    packages, node = installed(FRONTENDS).parent, installed(MCP_CLIENTS) / ".bin" / "node"
    headers = {"authorization": f"Bearer {token}"} if token else {}
    told = {
        "packages": str(packages),
        "api": f"{base_url}/chat/stream",
        "headers": headers,
        "body": body,
        "acts": acts,
    }
    process = await asyncio.create_subprocess_exec(
        *(node, FRONTENDS / "speak.mjs", json.dumps(told)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        answer, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    assert not errors, errors.decode()
    return json.loads(answer)
