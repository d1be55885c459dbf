"""A real SMTP server (aiosmtpd) on a free port of loopback, which a test reads line by line: first its port, then each
accepted mail as a JSON object, as Python's mail parser reads it. The part before `@` says what it answers:
`later…` 450 to the first recipient command, `greylisted…` 451 to the first message, `unknown…` 550 5.1.1 with the
address, `policy…` and `malformed…` 554, `slow…` nothing.

With the arguments `MODE HOST CERTIFICATE KEY` it listens at another host: `starttls` and `implicit` TLS are for `me` with
a password, `open` TLS needs no login, `plain` has none."""

import asyncio
import email
import email.policy
import json
import ssl
import sys
from collections import Counter

from aiosmtpd.smtp import SMTP, AuthResult

seen = Counter()


class Handler:
    async def handle_RCPT(self, server, session, envelope, address, options):
        seen[address] += 1
        if address.startswith("later") and seen[address] == 1:
            return "450 4.2.0 mailbox busy, try again"
        if address.startswith("unknown"):
            return f"550 5.1.1 <{address}>: user unknown"
        if address.startswith("slow"):
            await asyncio.sleep(60)
        envelope.rcpt_tos.append(address)
        return "250 2.1.5 ok"

    async def handle_DATA(self, server, session, envelope):
        address = envelope.rcpt_tos[0]
        if address.startswith("greylisted") and seen[address] == 1:
            return "451 4.7.1 greylisted"
        if address.startswith("policy"):
            return "554 5.7.1 not wanted here"
        if address.startswith("malformed"):
            return "554 5.6.0 not readable"
        mail = email.message_from_bytes(envelope.content, policy=email.policy.default)
        found = {
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "helo": session.host_name,
            "tls": server.transport.get_extra_info("cipher") is not None,
            "login": session.auth_data,
            "headers": [[name, str(value)] for name, value in mail.items()],
            "type": mail.get_content_type(),
            "parts": [part.get_content_type() for part in mail.iter_parts()],
            "text": mail.get_body(("plain",)).get_content(),
            "html": mail.get_body(("html",)).get_content(),
            "defects": [str(defect) for part in mail.walk() for defect in part.defects],
            "longest_line": max(map(len, envelope.content.split(b"\r\n"))),
        }
        print(json.dumps(found), flush=True)
        return "250 2.0.0 queued as 1"


def authenticate(server, session, envelope, mechanism, data):
    is_known = (data.login, data.password) == (b"me", b"p@ss")
    return AuthResult(success=is_known, auth_data="me")


async def main():
    host, listening, options = "127.0.0.1", {}, {}
    if len(sys.argv) > 1:
        mode, host, certificate, key = sys.argv[1:]
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, key)
        if mode in ("starttls", "open"):
            options = {"tls_context": context, "require_starttls": True}
        elif mode == "implicit":
            # aiosmtpd counts STARTTLS alone as TLS.
            listening, options = {"ssl": context}, {"auth_require_tls": False}
        if mode in ("starttls", "implicit"):
            options |= {"authenticator": authenticate, "auth_required": True}
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: SMTP(Handler(), hostname="mail.test", **options), host, 0, **listening)
    print(server.sockets[0].getsockname()[1], flush=True)
    # The test closes our input when it ends, however it does.
    await loop.run_in_executor(None, sys.stdin.read)


asyncio.run(main())
