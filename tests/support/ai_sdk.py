"""Runs the published AI SDK and the decoder of assistant-ui in Node."""

import asyncio
import json
from pathlib import Path
from typing import Any

from tests.node_packages import MCP_CLIENTS, install_packages
from tests.waiting import WAIT_SECONDS

FRONTENDS = Path(__file__).resolve().parents[1] / "frontends"


VERSIONS = {6: "ai6", 7: "ai"}
"""The major versions of the AI SDK, and the names of their packages."""


async def run_ai_sdk(
    base_url: str, *actions: dict[str, Any], version: int = 7, token: str | None = None, **body: Any
) -> list[dict[str, Any]]:
    """Returns the messages of a front end after each action: `say`, `decide`, `regenerate`, `leave` or `resume`."""
    packages, node = install_packages(FRONTENDS).parent, install_packages(MCP_CLIENTS) / ".bin" / "node"
    headers = {"authorization": f"Bearer {token}"} if token else {}
    headers |= {"x-ai-sdk-version": str(version)} if version < 7 else {}
    options = {
        "packages": str(packages),
        "ai": VERSIONS[version],
        "api": f"{base_url}/chat/stream",
        "headers": headers,
        "body": body,
        "actions": actions,
    }
    process = await asyncio.create_subprocess_exec(
        *(node, FRONTENDS / "speak.mjs", json.dumps(options)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(WAIT_SECONDS):
        output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    assert not errors, errors.decode()
    return json.loads(output)
