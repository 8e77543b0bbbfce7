"""The AI SDK's chat and assistant-ui's decoder, in Node, as they come from their makers."""

import asyncio
import json
from pathlib import Path
from typing import Any

from tests.node_packages import MCP_CLIENTS, installed

FRONTENDS = Path(__file__).resolve().parents[1] / "frontends"


VERSIONS = {5: "ai5", 6: "ai6", 7: "ai"}
"""Its major versions, and the names under which they are installed."""


async def speak(
    base_url: str, *acts: dict[str, Any], version: int = 7, token: str | None = None, **body: Any
) -> list[dict[str, Any]]:
    """What a front end has after each act: `say`, `decide`, `regenerate`, `leave`, `resume`."""
    packages, node = installed(FRONTENDS).parent, installed(MCP_CLIENTS) / ".bin" / "node"
    headers = {"authorization": f"Bearer {token}"} if token else {}
    headers |= {"x-ai-sdk-version": str(version)} if version < 7 else {}
    told = {
        "packages": str(packages),
        "ai": VERSIONS[version],
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
