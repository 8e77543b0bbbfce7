"""E-mail, by the operator's mail server and to the recipients that the operator lists."""

import asyncio
import logging
import ssl
from collections.abc import Mapping, Sequence
from email.header import Header
from email.mime.text import MIMEText
from email.policy import compat32
from email.utils import format_datetime, formataddr
from typing import Any

import aiosmtplib
from pydantic import ValidationError

from backend.alerts.channels.channel import Notification, Outcome, Problem, SendResult
from backend.alerts.channels.http import has_cause
from backend.alerts.channels.targets import EmailTarget
from common.clock import Clock, utc_now
from common.mail import SmtpServer, read_sender
from common.telemetry.logs import fields
from common.tls import get_tls_context

_log = logging.getLogger(__name__)

_SECONDS = 30.0
_LINE_CHARS = 60


class Recipients:
    """Who may get e-mail: addresses, `@example.com` for everybody there, or `*` for everybody."""

    def __init__(self, listed: Sequence[str]) -> None:
        self._listed = {entry.lower() for entry in listed}

    def allow(self, address: str) -> bool:
        address = address.lower()
        return not self._listed.isdisjoint({"*", address, address[address.index("@") :]})


class EmailChannel:
    def __init__(
        self,
        server: SmtpServer,
        sender: str,
        recipients: Recipients,
        *,
        seconds: float = _SECONDS,
        tls: ssl.SSLContext | None = None,
        clock: Clock = utc_now,
    ) -> None:
        """`sender` is an address, or a name with one: `To-dos <todo@example.com>`."""
        self._server = server
        self._name, self._address = read_sender(sender)
        self._recipients = recipients
        self._seconds = seconds
        self._tls = tls
        self._clock = clock

    def find_problem(self, target: Mapping[str, Any]) -> Problem | None:
        try:
            address = EmailTarget.model_validate(target).address
        except ValidationError:
            return Problem.INVALID_TARGET
        return None if self._recipients.allow(address) else Problem.RECIPIENT_NOT_LISTED

    async def send(self, target: Mapping[str, Any], message: Notification) -> SendResult:
        if problem := self.find_problem(target):
            return SendResult(Outcome.PERMANENT, problem=problem)
        recipient = EmailTarget.model_validate(target).address
        delivery = _Delivery()
        try:
            content = self._render(recipient, message)
            async with asyncio.timeout(self._seconds):
                await delivery.run(self._create_client(), self._server, self._address, recipient, content)
        except Exception as error:  # noqa: BLE001 - a channel never raises
            return delivery.read_error(error)
        return SendResult(Outcome.ACCEPTED)

    def _create_client(self) -> aiosmtplib.SMTP:
        return aiosmtplib.SMTP(
            hostname=self._server.host,
            port=self._server.port,
            # Else the name of this machine, which aiosmtplib 5.1 looks up in the DNS, would be sent.
            local_hostname=self._domain,
            use_tls=self._server.from_start,
            start_tls=False,
            tls_context=self._tls or get_tls_context(),
            timeout=self._seconds,
        )

    @property
    def _domain(self) -> str:
        return self._address.rpartition("@")[2]

    def _render(self, recipient: str, message: Notification) -> bytes:
        """Renders it with the old classes of the standard library, which take a header as it is.

        `EmailMessage` (Python 3.11) decodes what looks encoded in a title, line breaks included, and so adds headers.
        """
        message = message.clean()
        text = "\n\n".join(part for part in (message.body, message.url) if part) + "\n"
        email = MIMEText(text.replace("\n", "\r\n"), "plain", "utf-8")
        email["From"] = formataddr((self._name, self._address))
        email["To"] = recipient
        email["Subject"] = _encode(message.title)  # pyright: ignore[reportArgumentType] - typeshed knows strings only
        email["Date"] = format_datetime(self._clock())
        email["Message-ID"] = f"<{message.key}@{self._domain}>"
        email["Auto-Submitted"] = "auto-generated"  # RFC 3834: no answers of those who are away
        return email.as_bytes(policy=compat32.clone(linesep="\r\n"))


def _encode(title: str) -> Header:
    is_plain = title.isascii() and "=?" not in title and len(title) <= _LINE_CHARS
    return Header(title, "us-ascii" if is_plain else "utf-8", header_name="Subject")


class _Delivery:
    """One connection, and how far it came. Once it is sending, the server may have taken the message."""

    def __init__(self) -> None:
        self._failure = Problem.UNREACHABLE
        self._is_sending = False

    async def run(
        self, client: aiosmtplib.SMTP, server: SmtpServer, sender: str, recipient: str, content: bytes
    ) -> None:
        try:
            await client.connect()
            await client.ehlo()
            if not server.from_start and not server.plain:
                self._failure = Problem.NO_ENCRYPTION
                await client.starttls()
            if server.user is not None and server.password is not None:
                self._failure = Problem.LOGIN
                await client.login(server.user, server.password)
            self._failure = Problem.SENDER_REJECTED
            await client.mail(sender)
            await client.rcpt(recipient)
            self._is_sending = True
            await client.data(content)
        finally:
            client.close()

    def read_error(self, error: Exception) -> SendResult:
        """Returns what an error means. What the operator can repair switches no user's channel off."""
        match error:
            case aiosmtplib.SMTPRecipientRefused(code=code) if code >= 500:
                return SendResult(Outcome.PERMANENT, problem=Problem.RECIPIENT_REJECTED)
            case aiosmtplib.SMTPDataError(code=code) if code >= 500:
                return SendResult(Outcome.PERMANENT, problem=Problem.REJECTED)
            case aiosmtplib.SMTPResponseException(code=code):
                return SendResult(Outcome.RETRY, problem=Problem.BUSY if code < 500 else self._failure)
            case _ if has_cause(error, ssl.SSLCertVerificationError):
                return SendResult(Outcome.RETRY, problem=Problem.CERTIFICATE)
            case TimeoutError() if self._is_sending:
                return SendResult(Outcome.UNKNOWN, problem=Problem.TIMEOUT)
            case OSError() if self._is_sending:
                return SendResult(Outcome.UNKNOWN, problem=Problem.INTERRUPTED)
            case OSError():  # also TimeoutError and what aiosmtplib raises for lost connections
                return SendResult(Outcome.RETRY, problem=Problem.UNREACHABLE)
            case aiosmtplib.SMTPException() if not self._is_sending:  # an extension is missing
                return SendResult(Outcome.RETRY, problem=self._failure)
            case _:
                # Not the error itself, whose text may quote the message.
                _log.warning("An e-mail could not be sent", extra=fields(error=type(error).__name__))
                return SendResult(Outcome.UNKNOWN, problem=Problem.INTERRUPTED)
