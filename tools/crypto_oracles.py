#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes tests/storage/oracles/tink.inc: objects that Google Tink's streaming AEAD AES256_GCM_HKDF has encrypted. Salts and
nonces are random, so that each call writes other bytes.

    tools/crypto_oracles.py            writes the file
    tools/crypto_oracles.py --check    has Tink decrypt what the file has, and fails if one has another plaintext; skipped,
                                       with status 77, where Tink is missing, unless CI is true
    tools/crypto_oracles.py --open FILE SEGMENT_SIZE ASSOCIATED
                                       has Tink decrypt a file that was encrypted with the key below, to the standard output

Needs tink, which PyPI has: of this Python, or of the one that PENSTOCK_TEST_TINK names."""

import io
import os
import pathlib
import re
import sys

from oracle_files import literals

FILE = pathlib.Path(__file__).resolve().parent.parent / "tests" / "storage" / "oracles" / "tink.inc"
KEY = b"take the bytes from your vault!!"  # nobody's
# segment size, associated data, size of the plaintext
OBJECTS = [(128, b"", size) for size in (0, 1, 71, 72, 73, 183, 184, 185, 500)] + [
    (57, b"", 100), (128, b"photos", 300), (128, b"photos \xc3\xa4", 0), (4096, b"", 4041)]

try:
    import tink
    from tink import secret_key_access, streaming_aead
    from tink.proto import aes_gcm_hkdf_streaming_pb2, common_pb2, tink_pb2
except ImportError as missing:
    other = os.environ.get("PENSTOCK_TEST_TINK", "")
    if other and os.path.abspath(other) != os.path.abspath(sys.executable):
        os.execv(other, [other] + sys.argv)
    print(f"crypto_oracles: skipped: {missing}; install tink")
    sys.exit(77 if "--check" in sys.argv[1:] and os.environ.get("CI") != "true" else 1)


def plaintext(size):
    return bytes((i * 31 + (i >> 8)) & 255 for i in range(size))


def primitive(segment_size):
    params = aes_gcm_hkdf_streaming_pb2.AesGcmHkdfStreamingParams(
        ciphertext_segment_size=segment_size, derived_key_size=32, hkdf_hash_type=common_pb2.SHA256)
    key = aes_gcm_hkdf_streaming_pb2.AesGcmHkdfStreamingKey(version=0, key_value=KEY, params=params)
    data = tink_pb2.KeyData(type_url="type.googleapis.com/google.crypto.tink.AesGcmHkdfStreamingKey",
                            value=key.SerializeToString(), key_material_type=tink_pb2.KeyData.SYMMETRIC)
    only = tink_pb2.Keyset.Key(key_data=data, status=tink_pb2.ENABLED, key_id=1, output_prefix_type=tink_pb2.RAW)
    keys = tink.proto_keyset_format.parse(
        tink_pb2.Keyset(primary_key_id=1, key=[only]).SerializeToString(), secret_key_access.TOKEN)
    return keys.primitive(streaming_aead.StreamingAead)


class kept(io.BytesIO):
    """Tink closes what it writes to."""

    def close(self):
        self.bytes = self.getvalue()
        super().close()


def encrypted(segment_size, associated, size):
    into = kept()
    with primitive(segment_size).new_encrypting_stream(into, associated) as stream:
        stream.write(plaintext(size))
    return into.bytes


def decrypted(segment_size, associated, data):
    with primitive(segment_size).new_decrypting_stream(io.BytesIO(data), associated) as stream:
        return stream.read()


def bytes_of(text):
    """The bytes of adjacent C++ string literals."""
    joined = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text))
    return b"".join(bytes([int(one[1:], 8)]) if re.fullmatch(r"\\[0-7]{3}", one) else one[-1].encode()
                    for one in re.findall(r"\\[0-7]{3}|\\.|[^\\]", joined))


def check():
    rows = re.findall(r"^\{(\d+), std::string_view\((.*?), (\d+)\), (\d+), std::string_view\((.*?), (\d+)\)\},$",
                      FILE.read_text(encoding="ascii"), re.MULTILINE | re.DOTALL)
    found = []
    for segment_size, associated, _, size, data, length in rows:
        one = (int(segment_size), bytes_of(associated), int(size))
        stored = bytes_of(data)
        if len(stored) != int(length) or decrypted(one[0], one[1], stored) != plaintext(one[2]):
            sys.exit(f"crypto_oracles: Tink reads something else from the object {one}; was it edited?")
        found.append(one)
    if found != OBJECTS:
        sys.exit("crypto_oracles: the file has other objects than this program writes")
    print(f"crypto_oracles: Tink decrypts all {len(found)} objects")


def main():
    streaming_aead.register()
    if "--check" in sys.argv[1:]:
        check()
    elif sys.argv[1:2] == ["--open"]:
        path, segment_size, associated = sys.argv[2:]
        sys.stdout.buffer.write(decrypted(int(segment_size), associated.encode(), pathlib.Path(path).read_bytes()))
    else:
        rows = []
        for segment_size, associated, size in OBJECTS:
            data = encrypted(segment_size, associated, size)
            rows.append(f"{{{segment_size}, std::string_view({literals(associated)}, {len(associated)}), {size}, "
                        f"std::string_view({literals(data)}, {len(data)})}},\n")
        FILE.parent.mkdir(exist_ok=True)
        FILE.write_text("// Made by tools/crypto_oracles.py with Google Tink; not to be edited.\n" + "".join(rows),
                        encoding="ascii")


if __name__ == "__main__":
    main()
