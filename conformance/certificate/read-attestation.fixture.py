"""Verifies a DSSE envelope with securesystemslib, without code of Berth, and prints its in-toto statement.

usage: read-attestation.fixture.py ENVELOPE PUBLIC_KEY_HEX. Exits with 1 if the signature is wrong.
"""

import base64
import json
import sys

from securesystemslib.exceptions import UnverifiedSignatureError
from securesystemslib.signer import Signature, SSlibKey

with open(sys.argv[1], encoding="utf-8") as file:
    envelope = json.load(file)
(signature,) = envelope["signatures"]
keyid = signature["keyid"]
key = SSlibKey(keyid, "ed25519", "ed25519", {"public": sys.argv[2]})
payload = base64.b64decode(envelope["payload"], validate=True)
kind = envelope["payloadType"].encode()
# The pre-authentication encoding of DSSE 1: Debian 12 has securesystemslib 0.26, which leaves it to its callers.
signed = b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)
sig = base64.b64decode(signature["sig"], validate=True).hex()
try:
    key.verify_signature(Signature(keyid, sig), signed)
except UnverifiedSignatureError as error:
    sys.exit(f"not verified: {error}")
print(json.dumps(json.loads(payload)))
