"""Knows what the models of an endpoint can do: asks their server at the start, and again before requests."""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import httpx2

from backend.model.capabilities.client import SECONDS, Capabilities, CapabilitiesUnknown, CapabilityClient, can_be_asked
from backend.model.capabilities.context_size import find_small_context
from backend.model.capabilities.tool_call_modes import ToolCallModes
from backend.model.providers import ModelEndpoint

logger = logging.getLogger(__name__)

_FRESH_SECONDS = 10.0  # then a model is asked about again: another one may have been loaded under its name
_REFRESH_SECONDS = 0.25  # that a request waits for what has been asked before
_PAUSE_SECONDS = 60.0  # before a server is asked again that gave no usable response


class CapabilityLookup:
    """Providers that have nothing to ask are not asked.

    Where no address is set, a server may be at one of several; `on_address` gets the one at which it was found.
    """

    def __init__(
        self, endpoint: ModelEndpoint, http: httpx2.AsyncClient, modes: ToolCallModes, on_address: Callable[[str], None]
    ) -> None:
        self._endpoint, self._http, self._modes, self._on_address = endpoint, http, modes, on_address
        self._can_be_asked = can_be_asked(endpoint.profile.name)
        self._known: dict[str, Capabilities] = {}  # by the model's name
        self._ask_again_at: dict[str, float] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._has_asked: set[str] = set()
        self._faults: dict[str, str] = {}
        """What was logged, by the model's name."""

    def start(self) -> None:
        for model in self._endpoint.models if self._can_be_asked else ():
            self._begin(model)

    def get(self, model: str) -> Capabilities:
        return self._known.get(model, Capabilities())

    async def look_up(self, model: str) -> None:
        """Asks about a model if what is known of it is old.

        Waits for a server that was never asked, and for one that says whether the model calls tools, as the request
        depends on that; not for one that did not respond as expected before.
        """
        if not self._can_be_asked:
            return
        if time.monotonic() >= self._ask_again_at.get(model, 0.0):
            self._begin(model)
        known = self._known.get(model)
        is_needed = model not in self._faults if known is None else known.has_tools is not None
        if is_needed and model in self._asking:
            with suppress(TimeoutError):
                seconds = _REFRESH_SECONDS if model in self._has_asked else SECONDS
                await asyncio.wait_for(asyncio.shield(self._asking[model]), seconds)

    def expire(self, model: str) -> None:
        """Lets the next request ask again: the last one has failed, so the server may have been started anew."""
        if model in self._known:
            self._ask_again_at.pop(model, None)

    async def aclose(self) -> None:
        asking = [*self._asking.values()]
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    def _begin(self, model: str) -> None:
        if model not in self._asking:
            self._asking[model] = asyncio.create_task(self._ask(model))
            self._asking[model].add_done_callback(lambda _: self._asking.pop(model, None))

    async def _ask(self, model: str) -> None:
        """Never raises."""
        urls = (self._endpoint.base_url, *self._endpoint.other_urls)
        found = await asyncio.gather(*(self._ask_at(url, model) for url in urls))
        self._has_asked.add(model)
        answers = [(url, one) for url, one in zip(urls, found, strict=True) if isinstance(one, Capabilities)]
        if answers:
            url, capabilities = answers[0]
            self._ask_again_at[model] = time.monotonic() + _FRESH_SECONDS
            self._faults.pop(model, None)
            if self._endpoint.other_urls:
                self._on_address(url)
            self._note(model, capabilities)
            return
        faults = [one for one in found if isinstance(one, CapabilitiesUnknown)]
        loading = [url for url, fault in zip(urls, faults, strict=True) if fault.is_loading]
        if self._endpoint.other_urls and loading:
            self._on_address(loading[0])
        if not all(fault.is_passing for fault in faults):
            self._ask_again_at[model] = time.monotonic() + _PAUSE_SECONDS
            self._log_fault(model, str(next(fault for fault in faults if not fault.is_passing)))

    async def _ask_at(self, url: str, model: str) -> Capabilities | CapabilitiesUnknown:
        client = CapabilityClient(self._http, url, self._endpoint.api_key)
        try:
            return await client.ask(self._endpoint.profile.name, model)
        except CapabilitiesUnknown as unknown:
            return unknown

    def _log_fault(self, model: str, fault: str) -> None:
        if self._faults.get(model) != fault:
            self._faults[model] = fault
            logger.info("what the model %s can do is not known: its server %s", model, fault)

    def _note(self, model: str, capabilities: Capabilities) -> None:
        before = self._known.get(model)
        if before is not None and not capabilities.source:  # Ollama names it only while the model is loaded
            capabilities = replace(capabilities, source=before.source)
        self._known[model] = capabilities
        if before is not None and (
            before.has_tools != capabilities.has_tools or before.source not in ("", capabilities.source)
        ):
            self._modes.use_native(model)
        if capabilities.has_tools is False:
            self._modes.use_text(model, "cannot call tools, as its server says")
        context, cure = capabilities.context_tokens, self._endpoint.profile.context_cure
        small = find_small_context(context, self._modes.get(model), cure)
        if small and (before is None or before.context_tokens != context):
            logger.warning("model %s: %s", model, small)
