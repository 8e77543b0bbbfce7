"""What signs users in at the identity provider."""

import asyncio
from dataclasses import dataclass, field

from backend.accounts.oidc.client import ProviderUnavailable
from backend.accounts.oidc.provider import Provider
from backend.accounts.oidc.renewal import ProviderSessions
from backend.accounts.oidc.sealing import Sealer

_AT_ONCE = 20  # sign-ins for which the provider is asked, in each process


@dataclass(frozen=True, slots=True)
class OidcSignIn:
    provider: Provider
    sealer: Sealer
    sessions: ProviderSessions
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    async def find_sign_out_url(self, id_token: str | None, return_to: str) -> str | None:
        """Returns where the provider ends its own session too; None if it cannot be reached, or does not offer that."""
        if id_token is None:
            return None
        try:
            return await self.provider.create_sign_out_url(id_token, return_to)
        except ProviderUnavailable:
            return None
