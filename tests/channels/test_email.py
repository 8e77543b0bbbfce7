"""E-mail, against a mail server on loopback."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from backend.alerts.channels.channel import Outcome, Problem, SendResult
from backend.alerts.channels.email import EmailChannel, Recipients
from common.mail import SmtpServer, is_email_address, read_sender, read_smtp_url
from tests.channels.certificates import create_contexts
from tests.channels.mail_server import MailServer, serve_mail
from tests.channels.messages import BODY, TITLE, URL, assert_not_logged, create_message

ANN = "ann@example.com"
SENDER = "Tö-dos <todo@todo.example>"
NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
ACCEPTED = SendResult(Outcome.ACCEPTED)
LIMIT_SECONDS = 60


def create_channel(
    server: MailServer | int,
    *,
    plain: bool = True,
    from_start: bool = False,
    login: tuple[str, str] | None = None,
    seconds: float = LIMIT_SECONDS,
    tls: ssl.SSLContext | None = None,
) -> EmailChannel:
    port = server if isinstance(server, int) else server.port
    user, password = login or (None, None)
    smtp = SmtpServer("localhost", port, from_start, plain, user, password)
    return EmailChannel(smtp, SENDER, Recipients(["@example.com"]), seconds=seconds, tls=tls, clock=lambda: NOW)


async def send(channel: EmailChannel, address: str = ANN, **changes: Any) -> SendResult:
    async with asyncio.timeout(LIMIT_SECONDS):
        return await channel.send({"address": address}, create_message(**changes))


async def test_message() -> None:
    async with serve_mail() as server:
        assert await send(create_channel(server)) == ACCEPTED
    [mail] = server.received
    assert (mail.sender, mail.recipients) == ("todo@todo.example", [ANN])
    message = mail.message
    assert {name: str(message[name]) for name in ("From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted")} == {
        "From": SENDER,
        "To": ANN,
        "Subject": TITLE,
        "Date": "Wed, 25 Nov 2026 12:00:00 +0000",
        "Message-ID": f"<{create_message().key}@todo.example>",
        "Auto-Submitted": "auto-generated",
    }
    assert message.get_content() == f"{BODY}\r\n\r\n{URL}\r\n"


async def test_repetition_has_the_same_id() -> None:
    async with serve_mail() as server:
        channel = create_channel(server)
        for key in ("first", "first", "second"):
            await send(channel, key=key)
    ids = [str(mail.message["Message-ID"]) for mail in server.received]
    assert ids == ["<first@todo.example>", "<first@todo.example>", "<second@todo.example>"]


async def test_name_of_this_machine_is_not_sent() -> None:
    async with serve_mail() as server:
        await send(create_channel(server))
    [mail] = server.received
    assert mail.client_name == "todo.example"
    assert socket.gethostname().encode() not in mail.content


async def test_starttls_and_login(tmp_path: Path) -> None:
    own, client = create_contexts(tmp_path)
    async with serve_mail(starttls=own, login=True) as server:
        channel = create_channel(server, plain=False, login=server.login, tls=client)
        assert await send(channel) == ACCEPTED
    [mail] = server.received
    assert (mail.encrypted, mail.user) == (True, server.login[0])


async def test_tls_from_the_start_and_login(tmp_path: Path) -> None:
    own, client = create_contexts(tmp_path)
    async with serve_mail(tls=own, login=True) as server:
        channel = create_channel(server, plain=False, from_start=True, login=server.login, tls=client)
        assert await send(channel) == ACCEPTED
    assert server.received[0].user == server.login[0]


async def test_without_encryption_neither_login_nor_message_is_sent() -> None:
    async with serve_mail() as server:
        result = await send(create_channel(server, plain=False, login=server.login))
    assert result == SendResult(Outcome.RETRY, problem=Problem.NO_ENCRYPTION)
    assert (server.attempts, server.received) == ([], [])


@pytest.mark.parametrize("from_start", [False, True])
async def test_certificate_that_is_not_trusted(tmp_path: Path, from_start: bool) -> None:
    own, _ = create_contexts(tmp_path)
    async with serve_mail(**{"tls" if from_start else "starttls": own}, login=True) as server:
        channel = create_channel(server, plain=False, from_start=from_start, login=server.login)
        assert await send(channel) == SendResult(Outcome.RETRY, problem=Problem.CERTIFICATE)
    assert server.attempts == []


@pytest.mark.parametrize("login", [("ann", "wrong"), ("bob", "pässword: @/")])
async def test_wrong_login_switches_no_channel_off(tmp_path: Path, login: tuple[str, str]) -> None:
    own, client = create_contexts(tmp_path)
    async with serve_mail(starttls=own, login=True) as server:
        channel = create_channel(server, plain=False, login=login, tls=client)
        assert await send(channel) == SendResult(Outcome.RETRY, problem=Problem.LOGIN)
    assert server.received == []


async def test_server_without_logins(tmp_path: Path) -> None:
    async with serve_mail() as server:
        channel = create_channel(server, login=("ann", "password"))
        assert await send(channel) == SendResult(Outcome.RETRY, problem=Problem.LOGIN)


ANSWERS = {
    "MAIL 451": SendResult(Outcome.RETRY, problem=Problem.BUSY),
    "MAIL 550": SendResult(Outcome.RETRY, problem=Problem.SENDER_REJECTED),
    "RCPT 450": SendResult(Outcome.RETRY, problem=Problem.BUSY),
    "RCPT 550": SendResult(Outcome.PERMANENT, problem=Problem.RECIPIENT_REJECTED),
    "DATA 421": SendResult(Outcome.RETRY, problem=Problem.BUSY),
    "DATA 452": SendResult(Outcome.RETRY, problem=Problem.BUSY),
    "DATA 554": SendResult(Outcome.PERMANENT, problem=Problem.REJECTED),
}


@pytest.mark.parametrize("answer", ANSWERS)
async def test_answer(answer: str) -> None:
    command, _, code = answer.partition(" ")
    async with serve_mail() as server:
        server.answers[command] = f"{code} said the server about {ANN}"
        assert await send(create_channel(server)) == ANSWERS[answer]
    assert server.received == []


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("MAIL", SendResult(Outcome.RETRY, problem=Problem.UNREACHABLE)),
        ("RCPT", SendResult(Outcome.RETRY, problem=Problem.UNREACHABLE)),
        ("DATA", SendResult(Outcome.UNKNOWN, problem=Problem.TIMEOUT)),
    ],
)
async def test_server_that_does_not_answer_in_time(command: str, expected: SendResult) -> None:
    async with serve_mail() as server:
        server.silent.add(command)
        assert await send(create_channel(server, seconds=0.5)) == expected


Handle = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]


async def send_to(handle: Handle, *, seconds: float = 0.5) -> SendResult:
    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handle(reader, writer)
        except ConnectionError:
            pass
        finally:
            writer.transport.abort()

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as listener:
        return await send(create_channel(listener.sockets[0].getsockname()[1], seconds=seconds))


async def test_server_that_does_not_greet() -> None:
    async def wait(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    assert await send_to(wait) == SendResult(Outcome.RETRY, problem=Problem.UNREACHABLE)


async def test_greeting_without_end() -> None:
    async def flood(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not writer.is_closing():
            writer.write(b"220-" + b"x" * 60 + b"\r\n")
            await writer.drain()

    assert (await send_to(flood, seconds=LIMIT_SECONDS)).outcome is Outcome.RETRY


async def test_connection_that_is_lost_while_the_message_is_sent() -> None:
    async def leave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example\r\n")
        while line := await reader.readline():
            writer.write(b"354 Go on\r\n" if line.startswith(b"DATA") else b"250 OK\r\n")
            if line.startswith(b"DATA"):
                await reader.readuntil(b"\r\n.\r\n")
                return

    interrupted = SendResult(Outcome.UNKNOWN, problem=Problem.INTERRUPTED)
    assert await send_to(leave, seconds=LIMIT_SECONDS) == interrupted


async def test_server_that_cannot_be_reached() -> None:
    async with serve_mail() as server:
        port = server.port
    assert await send(create_channel(port)) == SendResult(Outcome.RETRY, problem=Problem.UNREACHABLE)


INJECTIONS = [
    "Milk\r\nBcc: victim@example.com",
    "Milk\nBcc: victim@example.com\n\nBuy this",
    "Milk\rBcc: victim@example.com",
    "Milk\r\n.\r\nMAIL FROM:<x@example.com>\r\n",
    "Milk\u2028Bcc: victim@example.com",
    "Milk\x85Bcc: victim@example.com",
    "Milk\x0bBcc: x\x0cBcc: y\x1cBcc: z",
    "=?utf-8?q?=0D=0ABcc=3A_victim=40example=2Ecom?=",
    "Milk\0Bcc: victim@example.com",
]


@pytest.mark.parametrize("text", INJECTIONS)
async def test_titles_and_texts_add_no_header_and_no_command(text: str) -> None:
    async with serve_mail() as server:
        assert await send(create_channel(server), title=text, body=text) == ACCEPTED
    [mail] = server.received
    assert mail.recipients == [ANN]
    message = mail.message
    assert message["Bcc"] is None
    assert sorted(name.lower() for name in message) == [
        *("auto-submitted", "content-transfer-encoding", "content-type", "date", "from", "message-id"),
        *("mime-version", "subject", "to"),
    ]
    assert str(message["Subject"]).startswith(("Milk", "=?"))
    assert message.get_content().rstrip().endswith(URL)


TITLES = [
    "Zahnarzt für Zoë anrufen",
    "给妈妈打电话",
    "اتصل بأمي",
    "🥳" * 200,
    "x" * 200,
    "ä " * 100,
    "👩🏽‍💻 review",
    'Say "hi" <now>, ok; yes=?',
    "'; DROP TABLE tasks; --",
]


@pytest.mark.parametrize("title", TITLES)
async def test_any_title_is_sent_in_seven_bits_and_short_lines(title: str) -> None:
    async with serve_mail() as server:
        assert await send(create_channel(server), title=title, body=f"{title}\n.\n..\n{title}") == ACCEPTED
    [mail] = server.received
    assert str(mail.message["Subject"]) == title.strip()
    assert mail.message.get_content() == f"{title}\r\n.\r\n..\r\n{title.strip()}\r\n\r\n{URL}\r\n"
    assert mail.content.isascii()
    assert max(map(len, mail.content.split(b"\r\n"))) <= 998


async def test_direction_overrides_and_what_is_invisible_are_removed() -> None:
    async with serve_mail() as server:
        await send(create_channel(server), title="\u202egnp.exe\u202c\u200b\u2066", body="a\u202eb\u2067")
    [mail] = server.received
    assert str(mail.message["Subject"]) == "gnp.exe"
    assert mail.message.get_content().startswith("ab\r\n")


@pytest.mark.parametrize(
    ("listed", "allowed"),
    [
        (["*"], {"ann@example.com", "bob@other.example", "Ann@EXAMPLE.com", "ann@a.example.com"}),
        (["@example.com"], {"ann@example.com", "Ann@EXAMPLE.com"}),
        (["@EXAMPLE.com"], {"ann@example.com", "Ann@EXAMPLE.com"}),
        (["ann@example.com"], {"ann@example.com", "Ann@EXAMPLE.com"}),
        (["example.com"], set()),
        ([], set()),
    ],
)
def test_recipients(listed: list[str], allowed: set[str]) -> None:
    recipients = Recipients(listed)
    addresses = {"ann@example.com", "Ann@EXAMPLE.com", "bob@other.example", "ann@a.example.com"}
    assert {address for address in addresses if recipients.allow(address)} == allowed


async def test_others_get_nothing() -> None:
    async with serve_mail() as server:
        channel = create_channel(server)
        assert await send(channel, "bob@other.example") == SendResult(
            Outcome.PERMANENT, problem=Problem.RECIPIENT_NOT_LISTED
        )
        assert await send(channel, "ann@example.com, bob@other.example") == SendResult(
            Outcome.PERMANENT, problem=Problem.INVALID_TARGET
        )
    assert server.received == []


@pytest.mark.parametrize(
    "text",
    [
        *("", "ann", "@example.com", "ann@", "ann@example..com", "ann@.example", "ann@example.com.", "a@b@example.com"),
        *(".ann@example.com", "ann.@example.com", "a..b@example.com", "ann @example.com", "ann@exam ple.com"),
        *("ann@example.com\r\nBcc: x@y.example", "ann@example.com\n", "<ann@example.com>", '"a b"@example.com'),
        *("ann@[127.0.0.1]", "änn@example.com", "ann@bücher.example", "ann@-example.com", f"{'a' * 65}@example.com"),
        f"ann@{'a' * 64}.example",
        f"ann@{'a.' * 130}example",
    ],
)
def test_no_address(text: str) -> None:
    assert not is_email_address(text)


@pytest.mark.parametrize(
    "text", ["a@b", "ann@example.com", "ann.o'neil+to-do@mail.example.com", "a_b@xn--bcher-kva.example"]
)
def test_address(text: str) -> None:
    assert is_email_address(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("todo@example.com", ("", "todo@example.com")),
        ("<todo@example.com>", ("", "todo@example.com")),
        ("To-dos of Ann <todo@example.com>", ("To-dos of Ann", "todo@example.com")),
        ("Für dich <todo@example.com>", ("Für dich", "todo@example.com")),
    ],
)
def test_sender(text: str, expected: tuple[str, str]) -> None:
    assert read_sender(text) == expected


@pytest.mark.parametrize(
    "text", ["To-dos", "A, B <a@b>", '"A" <a@b>', "A <a@b> B", "A\n<a@b>", "A\nB <a@b>", "<a@b", "A <a@b@c>"]
)
def test_no_sender(text: str) -> None:
    with pytest.raises(ValueError, match="sender"):
        read_sender(text)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("smtps://ann:p%40ss%2Fword@mail.example", SmtpServer("mail.example", 465, True, False, "ann", "p@ss/word")),
        (
            "smtp://a%40b.example:pw@mail.example:2525",
            SmtpServer("mail.example", 2525, False, False, "a@b.example", "pw"),
        ),
        ("smtp://mail.example", SmtpServer("mail.example", 587, False, False)),
        ("smtp://mail.example?tls=off", SmtpServer("mail.example", 587, False, True)),
        ("smtp://localhost:25", SmtpServer("localhost", 25, False, True)),
        ("smtp://127.0.0.1:25/", SmtpServer("127.0.0.1", 25, False, True)),
        ("smtp://[::1]:25", SmtpServer("::1", 25, False, True)),
        ("smtps://localhost", SmtpServer("localhost", 465, True, False)),
    ],
)
def test_mail_server(url: str, expected: SmtpServer) -> None:
    assert read_smtp_url(url) == expected
    assert "pw" not in repr(expected)


@pytest.mark.parametrize(
    "url",
    [
        *("", "mail.example", "http://mail.example", "smtp://", "smtp:mail.example", "smtp://ann@mail.example"),
        *("smtp://mail.example/path", "smtp://mail.example?tls=on", "smtp://mail.example?tls", "smtp://mail.example#a"),
        *("smtps://mail.example?tls=off", "smtp://mail.example:99999", "smtp://mail.example:x", "smtp://mail example"),
    ],
)
def test_no_mail_server(url: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - urllib has texts of its own
        read_smtp_url(url)


async def test_nothing_that_is_secret_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    logging.getLogger("mail.log").propagate = False  # the server's, which is the test's own
    own, client = create_contexts(tmp_path)
    async with serve_mail(starttls=own, login=True) as server:
        for answers in ({}, {"RCPT": "550 no"}, {"DATA": "554 no"}):
            server.answers = answers
            await send(create_channel(server, plain=False, login=server.login, tls=client))
        await send(create_channel(server, plain=False, login=("ann", "another secret"), tls=client))
    assert_not_logged(caplog, ANN, server.login[1], "another secret")
