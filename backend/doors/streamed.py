"""A response that is told as it comes."""

import asyncio

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send


class Streamed(StreamingResponse):
    """Ends when its reader leaves.

    Starlette's does so, too, by a task group of anyio's: each reader would hold one, and each that has left would leave
    it to the collector of garbage, with all that it had read.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        loop, reading, is_over = asyncio.get_running_loop(), asyncio.timeout(None), False

        def leave(_: object) -> None:
            if not is_over:
                reading.reschedule(loop.time())

        listening = asyncio.create_task(self.listen_for_disconnect(receive))
        try:
            async with reading:
                listening.add_done_callback(leave)
                try:
                    await self.stream_response(send)
                finally:
                    is_over = True
        except TimeoutError:
            if not reading.expired():
                raise
        finally:
            listening.cancel()
