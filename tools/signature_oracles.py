#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes tests/storage/s3/oracles/signatures.inc: random requests, and what botocore, the library below the tools of
AWS, makes of them with Signature Version 4. The secrets are random too, and belong to nobody.

    tools/signature_oracles.py            writes the file
    tools/signature_oracles.py --check    makes the signatures again, and fails if the file has others; skipped, with
                                          status 77, where botocore is missing

Needs botocore, which PyPI and Debian (python3-botocore) have."""

import datetime
import os
import random
import sys
import types

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FILE = os.path.join(ROOT, "tests", "storage", "s3", "oracles", "signatures.inc")
SYSTEM = "/usr/bin/python3"

try:
    from botocore import auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials
    from botocore.utils import percent_encode
except ImportError as missing:
    if os.path.exists(SYSTEM) and os.path.realpath(SYSTEM) != os.path.realpath(sys.executable):
        os.execv(SYSTEM, [SYSTEM, *sys.argv])
    print(f"signature_oracles: skipped: {missing}; install botocore")
    sys.exit(77 if "--check" in sys.argv[1:] else 1)

LETTERS = "abcdefghijklmnopqrstuvwxyz"
DIGITS = "0123456789"
STRANGE = " !\"#$%&'()*+,-.:;<=>?@[\\]^_`{|}~\u00e4\u00df\u4e2d\U0001f30d"
UNSIGNED = "UNSIGNED-PAYLOAD"


def word(draw, most, alphabet=LETTERS + DIGITS):
    return "".join(draw.choice(alphabet) for _ in range(draw.randint(1, most)))


def request(draw, number):
    """A request as the test reads it."""
    service = "sts" if number % 8 == 7 else "s3"
    scheme = draw.choice(("http", "https"))
    port = draw.choice(("", "", ":80", ":443", ":9000"))
    host = draw.choice(("localhost", "127.0.0.1", "[::1]", word(draw, 12) + ".s3.eu-west-1.amazonaws.com"))
    path = "/"
    if service == "s3":
        path = "/" + "/".join(word(draw, 10, LETTERS + DIGITS.upper() + STRANGE + "/.") for _ in range(draw.randint(0, 4)))
    alphabet = LETTERS + LETTERS.upper() + DIGITS + STRANGE + "/"
    names = {word(draw, 8, alphabet) for _ in range(draw.randint(0, 5))}
    query = [(name, word(draw, 20, alphabet) if draw.random() < 0.8 else "") for name in sorted(names)]
    if query and draw.random() < 0.5:
        query.append((query[0][0], word(draw, 5)))  # a name twice
    draw.shuffle(query)
    headers = [(draw.choice(("Range", "X-Amz-Meta-", "x-amz-request-payer", "If-Match", "content-type")), "") for _ in
               range(draw.randint(0, 3))]
    headers = [(name + (word(draw, 6) if name.endswith("-") else ""),
                "  " * draw.randint(0, 1) + "   ".join(word(draw, 9) for _ in range(draw.randint(1, 3))) + " " * draw.randint(0, 2))
               for name, _ in headers]
    body = word(draw, 60) if draw.random() < 0.5 else ""
    return {
        "service": service, "method": draw.choice(("GET", "HEAD", "PUT", "POST", "DELETE")),
        "base": f"{scheme}://{host}{port}", "path": path, "query": query, "headers": headers, "body": body,
        "unsigned": service == "s3" and scheme == "https" and draw.random() < 0.5,
        "id": "KEY" + word(draw, 17, LETTERS.upper() + DIGITS),
        "secret": word(draw, 70, LETTERS + LETTERS.upper() + DIGITS + "+/"),
        "token": word(draw, 200, LETTERS + DIGITS + "+/=") if draw.random() < 0.5 else "",
        "seconds": draw.randint(1, 4_000_000_000), "region": draw.choice(("us-east-1", "eu-central-1", "auto", "cn-north-1")),
    }


def signed(one):
    """The header Authorization."""
    when = datetime.datetime.fromtimestamp(one["seconds"], datetime.timezone.utc)
    auth.get_current_datetime = lambda *_: when
    if "datetime" in vars(auth):  # older versions ask it themselves
        auth.datetime = types.SimpleNamespace(datetime=types.SimpleNamespace(
            utcnow=lambda: when, strptime=datetime.datetime.strptime))
    sent = AWSRequest(method=one["method"], url=one["base"] + percent_encode(one["path"], safe="/~"),
                      params=list(one["query"]), data=one["body"].encode())
    for name, value in one["headers"]:
        sent.headers.add_header(name, value)
    sent.context["client_config"] = types.SimpleNamespace(s3={"payload_signing_enabled": not one["unsigned"]})
    who = Credentials(one["id"], one["secret"], one["token"] or None)
    kind = auth.S3SigV4Auth if one["service"] == "s3" else auth.SigV4Auth
    kind(who, one["service"], one["region"]).add_auth(sent)
    return sent.headers["Authorization"]


def literal(text):
    shown = "".join(chr(byte) if 32 <= byte < 127 and byte not in b'"\\?' else f"\\{byte:03o}" for byte in text.encode())
    return f'"{shown}"'


def pairs(items):
    return "{" + ", ".join(f"{{{literal(name)}, {literal(value)}}}" for name, value in items) + "}"


def text():
    draw = random.Random(20261123)
    lines = ["// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception",
             "// Written by tools/signature_oracles.py: service, method, scheme and host, path and query before they are encoded,",
             "// headers, body, whether it is unsigned, key id, secret, token, time, region, and what botocore makes of it."]
    for number in range(96):
        one = request(draw, number)
        parts = [literal(one[name]) for name in ("service", "method", "base", "path")]
        parts += [pairs(one["query"]), pairs(one["headers"]), literal(one["body"]), str(one["unsigned"]).lower()]
        parts += [literal(one[name]) for name in ("id", "secret", "token")]
        parts += [str(one["seconds"]), literal(one["region"]), literal(signed(one))]
        lines.append("{" + ", ".join(parts) + "},")
    return "\n".join(lines) + "\n"


def main():
    made = text()
    if "--check" not in sys.argv[1:]:
        os.makedirs(os.path.dirname(FILE), exist_ok=True)
        with open(FILE, "w", encoding="ascii") as out:
            out.write(made)
        return
    with open(FILE, encoding="ascii") as kept:
        if kept.read() != made:
            sys.exit("signature_oracles: the file has other signatures than botocore makes now; was it edited?")
    print("signature_oracles: botocore makes the same signatures")


if __name__ == "__main__":
    main()
