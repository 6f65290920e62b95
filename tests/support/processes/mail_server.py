"""A mail server that keeps what it gets: enough of SMTP for a client of the standard library."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread


@dataclass
class MailBox:
    """What a server has got.

    Attributes:
        port: where it listens.
        mails: who each was for, and what it says.
        logins: user and password of those who logged in, and whether that was encrypted.
        refused: the addresses that it does not know.
        status: what it answers to a mail.
    """

    port: int = 0
    mails: list[tuple[list[str], EmailMessage]] = field(default_factory=list)
    logins: list[tuple[str, bool]] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    status: str = "250 kept"


class _Conversation(StreamRequestHandler):
    box: MailBox
    tls: ssl.SSLContext | None

    def say(self, *lines: str) -> None:
        self.wfile.write("".join(f"{line}\r\n" for line in lines).encode())

    def handle(self) -> None:
        recipients: list[str] = []
        is_encrypted = False
        self.say("220 mail.test")
        while line := self.rfile.readline().decode().strip():
            word, _, rest = line.partition(" ")
            match word.upper():
                case "EHLO" if self.tls is not None and not is_encrypted:
                    self.say("250-mail.test", "250-AUTH PLAIN", "250 STARTTLS")
                case "EHLO":
                    self.say("250-mail.test", "250 AUTH PLAIN")
                case "STARTTLS" if self.tls is not None:
                    self.say("220 go on")
                    self.connection = self.tls.wrap_socket(self.connection, server_side=True)
                    self.setup()
                    is_encrypted = True
                case "AUTH":
                    given = base64.b64decode(rest.split()[1]).decode()
                    self.box.logins.append((given, is_encrypted))
                    self.say("235 welcome")
                case "RCPT" if rest.split("<")[1].rstrip(">") in self.box.refused:
                    self.say("550 nobody of this name")
                case "RCPT":
                    recipients.append(rest.split("<")[1].rstrip(">"))
                    self.say("250 fine")
                case "DATA":
                    self.say("354 go on")
                    data = b"".join(iter(self.rfile.readline, b".\r\n"))
                    mail = message_from_bytes(data, policy=policy.default)
                    self.box.mails.append((recipients, mail))
                    self.say(self.box.status)
                case "QUIT":
                    self.say("221 bye")
                    return
                case _:
                    self.say("250 fine")

    def setup(self) -> None:
        if not hasattr(self, "connection"):
            self.connection = self.request
        self.rfile = self.connection.makefile("rb")
        self.wfile = self.connection.makefile("wb", buffering=0)

    def finish(self) -> None:
        self.rfile.close()
        self.wfile.close()
        self.connection.close()


@contextmanager
def mail_server(certificate: tuple[Path, Path] | None = None) -> Iterator[MailBox]:
    """Serve until the end; with a certificate and its key, STARTTLS is offered."""
    box = MailBox()
    tls = None
    if certificate is not None:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(*certificate)
    handler = type("Conversation", (_Conversation,), {"box": box, "tls": tls})
    with ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        box.port = server.server_address[1]
        thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield box
        finally:
            server.shutdown()
            thread.join(5)
