"""Signatures: published vectors, and every way in which an envelope must not open."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from numbat_gates import Check, gate
from numbat_gates.attestation import (
    gate_run_predicate,
    make_statement,
    open_envelope,
    pae,
    peek_keyids,
    read_statement,
    sign,
)
from numbat_gates.digests import digest_bytes
from numbat_gates.gates._toy import toys
from numbat_gates.keys import key_id, keygen, load_private_key, load_public_key
from numbat_gates.reporting.folder import write_reports
from numbat_gates.reporting.specimen import specimen_report
from numbat_gates.strict_json import canonical_json, parse_json
from numbat_gates.verify import verify

_ALICE, _BOB = (Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32) for seed in (1, 2))

# DSSE v1 protocol, "Test Vectors": the type, the body, and a P-256 signature over their encoding.
_DSSE_TYPE, _DSSE_BODY = "http://example.com/HelloWorld", b"hello world"
_DSSE_PAE = b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
_DSSE_X = 46950820868899156662930047687818585632848591499744589407958293238635476079160
_DSSE_Y = 5640078356564379163099075877009565129882514886557779369047442380624545832820
_DSSE_SIGNATURE = (
    "A3JqsQGtVsJ2O2xqrI5IcnXip5GToJ3F+FnZ+O88SjtR6rDAajabZKciJTfUiHqJPcIAriEGAHTVeCUjW2JIZA=="
)

# RFC 8032 §7.1, TEST 2.
_RFC_8032_KEY = "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"
_RFC_8032_MESSAGE = b"\x72"
_RFC_8032_SIGNATURE = (
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
    "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
)

# RFC 8785 §3.2.2 and §3.2.3.
_RFC_8785_TEXT = (
    b'{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],'
    b'"string": "\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/",'
    b'"literals": [null, true, false]}'
)
_RFC_8785_CANONICAL = (
    '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
    '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
)


@gate(
    "GATE-G14",
    phase=3,
    discharges=["GATE-R017"],
    title="A signature holds for the very bytes that were signed, and for nothing else",
)
def attestation(check: Check) -> None:
    _published(check)
    _envelopes(check)
    _statements(check)
    with toys() as folder:
        _keys(check, folder)
        _reports(check, folder)


def _published(check: Check) -> None:
    check.equal("DSSE: what is signed", pae(_DSSE_TYPE, _DSSE_BODY), _DSSE_PAE)
    raw = base64.standard_b64decode(_DSSE_SIGNATURE)
    halves = (int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
    key = ec.EllipticCurvePublicNumbers(_DSSE_X, _DSSE_Y, ec.SECP256R1()).public_key()
    for body, holds in ((_DSSE_BODY, True), (b"hello World", False)):
        try:
            message = pae(_DSSE_TYPE, body)
            key.verify(encode_dss_signature(*halves), message, ec.ECDSA(hashes.SHA256()))
            held = True
        except InvalidSignature:
            held = False
        check.equal(f"DSSE: the published signature over {body.decode()!r}", held, holds)
    signer = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(_RFC_8032_KEY))
    check.equal("RFC 8032", signer.sign(_RFC_8032_MESSAGE).hex(), _RFC_8032_SIGNATURE)
    canonical = canonical_json(parse_json(_RFC_8785_TEXT)).decode()
    check.equal("RFC 8785", canonical, _RFC_8785_CANONICAL)
    for value in (float("nan"), float("inf"), 2**53, "\ud800", {1, 2}):
        with check.refuses("GATE-0607", f"no canonical text of {type(value).__name__}"):
            canonical_json({"value": value})


def _envelopes(check: Check) -> None:
    envelope = sign(b'{"verdict": "PASS"}', [_ALICE])
    opened = open_envelope(envelope, [_BOB.public_key(), _ALICE.public_key()])
    check.equal("signed and opened", opened.payload, b'{"verdict": "PASS"}')
    check.equal("by whom", opened.signers, (key_id(_ALICE.public_key()),))
    check.equal("claimed by", peek_keyids(envelope), (key_id(_ALICE.public_key()),))
    document = json.loads(envelope)

    def tried(code: str, name: str, **change: object) -> None:
        with check.refuses(code, name):
            open_envelope(json.dumps(document | change).encode(), [_ALICE.public_key()])

    tried("GATE-0602", "an edited payload", payload=base64.b64encode(b"{}").decode())
    tried("GATE-0602", "an edited type", payloadType="text/plain")
    bare = base64.b64encode(_ALICE.sign(b'{"verdict": "PASS"}')).decode()
    tried("GATE-0602", "a signature over the bare payload", signatures=[{"sig": bare}])
    tried("GATE-0601", "no signature at all", signatures=[])
    tried("GATE-0601", "a payload that is not base64", payload="*")
    with check.refuses("GATE-0602", "a stranger's key"):
        open_envelope(envelope, [_BOB.public_key()])
    twice = sign(b"{}", [_ALICE, _ALICE])
    with check.refuses("GATE-0602", "one key that signed twice for two"):
        open_envelope(twice, [_ALICE.public_key(), _BOB.public_key()], threshold=2)
    with check.refuses("GATE-0602", "no key at all"):
        open_envelope(envelope, [], threshold=0)
    with check.refuses("GATE-0603", "another type of payload"):
        open_envelope(sign(b"{}", [_ALICE], payload_type="text/plain"), [_ALICE.public_key()])


def _statements(check: Check) -> None:
    digest = digest_bytes(b"artefact")
    predicate = gate_run_predicate(specimen_report())
    payload = make_statement({"report.json": digest}, predicate)
    read = read_statement(open_envelope(sign(payload, [_ALICE]), [_ALICE.public_key()]))
    check.equal("in-toto: type", json.loads(payload)["_type"], "https://in-toto.io/Statement/v1")
    check.equal("in-toto: subjects", read.subjects, {"report.json": digest})
    check.equal("in-toto: verdict", read.predicate["verdict"], "ERROR")
    for code, name, change in (
        ("GATE-0603", "another type of statement", {"_type": "https://in-toto.io/Statement/v0"}),
        ("GATE-0603", "another predicate", {"predicateType": "https://slsa.dev/provenance/v1"}),
        ("GATE-0604", "no subject", {"subject": []}),
        ("GATE-0604", "a subject without SHA-256", {"subject": [{"name": "x", "digest": {}}]}),
    ):
        wrong = json.dumps(json.loads(payload) | change).encode()
        with check.refuses(code, name):
            read_statement(open_envelope(sign(wrong, [_ALICE]), [_ALICE.public_key()]))


def _keys(check: Check, folder: Path) -> None:
    made = keygen(folder / "plain")
    check.equal("a key: only its owner reads it", made.private.stat().st_mode & 0o777, 0o600)
    check.equal("a key: both halves", key_id(load_public_key(made.public)), made.keyid)
    private = load_private_key(made.private)
    check.equal("a key: read back", key_id(private.public_key()), made.keyid)
    locked = keygen(folder / "locked", passphrase=b"numbat")
    unlocked = load_private_key(locked.private, passphrase=b"numbat")
    check.equal("an encrypted key", key_id(unlocked.public_key()), locked.keyid)
    with check.refuses("GATE-0609", "an encrypted key without its passphrase"):
        load_private_key(locked.private)
    with check.refuses("GATE-0609", "an encrypted key with another passphrase"):
        load_private_key(locked.private, passphrase=b"wombat")
    with check.refuses("GATE-0609", "a file that is no key"):
        load_public_key(__file__)
    with check.refuses("GATE-0608", "a key over a key"):
        keygen(folder / "plain")


def _reports(check: Check, folder: Path) -> None:
    key = keygen(folder / "key")
    stranger = keygen(folder / "stranger")
    ours, other = folder / "ours", folder / "other"
    write_reports(specimen_report(passing=True), ours, key=key.private)
    write_reports(specimen_report(), other, key=key.private)
    with check.refuses("GATE-0605", "a valid signature over another artefact"):
        verify(ours, key=key.public, envelope=other / "report.dsse.json")
    with check.refuses("GATE-0602", "a report with a stranger's key"):
        verify(ours, key=stranger.public)
    page = ours / "report.html"
    whole = page.read_bytes()
    page.write_bytes(whole.replace(b"Every file", b"Each file", 1))
    with check.refuses("GATE-0606", "a page edited after signing"):
        verify(ours, key=key.public)
    page.write_bytes(whole)
    with check.refuses("GATE-0205", "a genuine report without its ledger"):
        verify(ours, key=key.public)
    report = ours / "report.json"
    report.write_bytes(report.read_bytes().replace(b"Every file", b"Each file", 1))
    with check.refuses("GATE-0606", "a report edited after signing"):
        verify(ours, key=key.public)
    (ours / "report.dsse.json").unlink()
    with check.refuses("GATE-0610", "a signature that is due and not there"):
        verify(ours, key=key.public)
