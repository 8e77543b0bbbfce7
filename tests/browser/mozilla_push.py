"""Stands in for Mozilla's push service: Firefox keeps a WebSocket to it, over which it subscribes and gets pushes."""

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Self
from uuid import uuid4

from websockets import ConnectionClosed
from websockets.asyncio.server import ServerConnection, serve

ENDPOINT = "https://updates.push.services.mozilla.com/wpush/v2/"


class MozillaPush:
    def __init__(self) -> None:
        self.address = ""
        self._channels: dict[str, tuple[ServerConnection, str]] = {}

    @classmethod
    @asynccontextmanager
    async def run(cls) -> AsyncIterator[Self]:
        service = cls()
        async with serve(service._serve, "127.0.0.1", 0) as server:
            service.address = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
            yield service

    @property
    def preferences(self) -> dict[str, Any]:
        """Of a Firefox that uses this service, and may show notifications."""
        return {
            "dom.push.serverURL": self.address,
            "dom.push.connection.enabled": True,  # which Firefox switches off while it is driven
            "dom.push.testing.allowInsecureServerURL": True,
            "permissions.default.desktop-notification": 1,
            "alerts.useSystemBackend": False,  # which is not there without a desktop
        }

    async def push(self, endpoint: str, encrypted: bytes) -> None:
        """Delivers what was encrypted for the subscription with this endpoint."""
        connection, channel_id = self._channels[endpoint]
        data = base64.urlsafe_b64encode(encrypted).decode().rstrip("=")
        message = {"messageType": "notification", "channelID": channel_id, "version": uuid4().hex, "data": data}
        await connection.send(json.dumps({**message, "headers": {"encoding": "aes128gcm"}}))

    async def _serve(self, connection: ServerConnection) -> None:
        with suppress(ConnectionClosed):  # Firefox ends without a word
            async for text in connection:
                if answer := self._answer(connection, json.loads(text)):
                    await connection.send(json.dumps(answer))

    def _answer(self, connection: ServerConnection, message: dict[str, Any]) -> dict[str, Any] | None:
        answer = {"messageType": message.get("messageType"), "status": 200}
        match message:
            case {"messageType": "hello"}:
                return {**answer, "uaid": message.get("uaid") or uuid4().hex, "use_webpush": True, "broadcasts": {}}
            case {"messageType": "register", "channelID": channel_id}:
                endpoint = f"{ENDPOINT}{uuid4().hex}"
                self._channels[endpoint] = connection, channel_id
                return {**answer, "channelID": channel_id, "pushEndpoint": endpoint}
            case {"messageType": "unregister", "channelID": channel_id}:
                return {**answer, "channelID": channel_id}
            case _:
                return None  # an acknowledgement
