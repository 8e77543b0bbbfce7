"""A mail server (aiosmtpd) on loopback, whose answers tests choose."""

import asyncio
import email
import email.policy
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session


@dataclass(frozen=True)
class ReceivedMail:
    sender: str
    recipients: list[str]
    content: bytes
    encrypted: bool
    user: str | None
    client_name: str

    @property
    def message(self) -> EmailMessage:
        message = email.message_from_bytes(self.content, policy=email.policy.SMTP)
        assert isinstance(message, EmailMessage)
        return message


@dataclass
class MailServer:
    """`answers` has the answers to commands, in place of good ones; a command in `silent` gets none."""

    port: int = 0
    login: tuple[str, str] = ("ann", "pässword: @/")
    answers: dict[str, str] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)
    received: list[ReceivedMail] = field(default_factory=list)
    attempts: list[str] = field(default_factory=list)
    """The users of all logins that were tried."""

    async def handle_MAIL(  # noqa: N802 - aiosmtpd's name
        self, _: SMTP, __: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        envelope.mail_from = address
        return await self._answer("MAIL")

    async def handle_RCPT(  # noqa: N802 - aiosmtpd's name
        self, _: SMTP, __: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        envelope.rcpt_tos.append(address)
        return await self._answer("RCPT")

    async def handle_DATA(  # noqa: N802 - aiosmtpd's name
        self, _: SMTP, session: Session, envelope: Envelope
    ) -> str:
        answer = await self._answer("DATA")
        if answer.startswith("2"):
            user: Any = session.auth_data
            self.received.append(
                ReceivedMail(
                    sender=envelope.mail_from or "",
                    recipients=list(envelope.rcpt_tos),
                    content=bytes(envelope.original_content or b""),
                    encrypted=session.ssl is not None,
                    user=user.login.decode() if user else None,
                    client_name=session.host_name or "",
                )
            )
        return answer

    async def _answer(self, command: str) -> str:
        if command in self.silent:
            await asyncio.Event().wait()
        return self.answers.get(command, "250 OK")

    def authenticate(self, _: SMTP, __: Session, ___: Envelope, mechanism: str, data: Any) -> AuthResult:
        assert isinstance(data, LoginPassword)
        self.attempts.append(data.login.decode())
        user, password = self.login
        is_right = (data.login, data.password) == (user.encode(), password.encode())
        return AuthResult(success=is_right, handled=False, auth_data=data)


@asynccontextmanager
async def serve_mail(
    *, starttls: ssl.SSLContext | None = None, tls: ssl.SSLContext | None = None, login: bool = False
) -> AsyncIterator[MailServer]:
    server = MailServer()
    loop = asyncio.get_running_loop()
    open_connections = list[SMTP]()

    def accept() -> SMTP:
        connection = SMTP(
            server,
            hostname="mail.example",
            tls_context=starttls,
            require_starttls=starttls is not None,
            auth_required=login and tls is None,  # it warns that AUTH needs STARTTLS, which is no use here
            auth_require_tls=tls is None,
            authenticator=server.authenticate,
            loop=loop,
        )
        open_connections.append(connection)
        return connection

    listener = await loop.create_server(accept, "127.0.0.1", 0, ssl=tls)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()
        for connection in open_connections:
            if connection.transport is not None:
                connection.transport.close()
        await asyncio.sleep(0.01)  # the event loop closes the connections
