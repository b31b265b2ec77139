"""Envelopes and statements against published vectors, and every way in which they must not open."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from numbat_gates.attestation import (
    PAYLOAD_TYPE,
    PREDICATE_TYPE,
    STATEMENT_TYPE,
    make_statement,
    open_envelope,
    pae,
    peek_keyids,
    read_statement,
    sign,
)
from numbat_gates.keys import PASSPHRASE, key_id, keygen, load_private_key, load_public_key
from numbat_gates.strict_json import NotStrictJson, canonical_json, parse_json
from numbat_registries import Refusal

ALICE, BOB = (Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32) for seed in (1, 2))


def test_pae_is_the_published_one() -> None:
    # DSSE protocol, "Test Vectors".
    expected = b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    assert pae("http://example.com/HelloWorld", b"hello world") == expected


def test_pae_counts_bytes_and_not_characters() -> None:
    assert pae("é", "ü".encode()) == b"DSSEv1 2 \xc3\xa9 2 \xc3\xbc"


def test_ed25519_is_that_of_rfc_8032() -> None:
    # RFC 8032 §7.1, TEST 2.
    secret = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
    signature = Ed25519PrivateKey.from_private_bytes(secret).sign(b"\x72")
    assert signature.hex().startswith("92a009a9f0d4cab8720e820b5f642540")


def test_canonical_json_is_that_of_rfc_8785() -> None:
    # RFC 8785 §3.2.2 and §3.2.3.
    text = (
        b'{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],'
        b'"string": "\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/",'
        b'"literals": [null, true, false]}'
    )
    expected = (
        '{"literals":[null,true,false],'
        '"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )
    assert canonical_json(parse_json(text)).decode() == expected


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**53, "\ud800", {1, 2}])
def test_what_has_no_canonical_text_is_refused(value: object) -> None:
    with pytest.raises(Refusal) as caught:
        canonical_json({"value": value})
    assert caught.value.code == "GATE-0607"


@pytest.mark.parametrize(
    "text", [b'{"a": 1, "a": 2}', b"[NaN]", b"[-Infinity]", b"\xff", b"{", b"[" * 100_000]
)
def test_json_with_two_readings_is_none(text: bytes) -> None:
    with pytest.raises(NotStrictJson):
        parse_json(text)


@given(payload=st.binary(max_size=200))
def test_what_was_signed_comes_out_byte_by_byte(payload: bytes) -> None:
    verified = open_envelope(sign(payload, [ALICE]), [ALICE.public_key()])
    assert verified.payload == payload
    assert verified.signers == (key_id(ALICE.public_key()),)


def envelope_with(**changes: object) -> bytes:
    return json.dumps(json.loads(sign(b"{}", [ALICE])) | changes).encode()


def test_both_base64_alphabets_open() -> None:
    payload = b"\xfb\xff\xfe" * 5
    document = json.loads(sign(payload, [ALICE]))
    assert "+" in document["payload"] or "/" in document["payload"]
    document["payload"] = base64.urlsafe_b64encode(payload).decode()
    sig = base64.standard_b64decode(document["signatures"][0]["sig"])
    document["signatures"][0]["sig"] = base64.urlsafe_b64encode(sig).decode()
    assert open_envelope(json.dumps(document).encode(), [ALICE.public_key()]).payload == payload


@pytest.mark.parametrize("claimed", ["", "sha256:00", key_id(BOB.public_key()), None])
def test_the_key_name_is_only_a_hint(claimed: str | None) -> None:
    document = json.loads(sign(b"{}", [ALICE]))
    document["signatures"][0]["keyid"] = claimed
    verified = open_envelope(json.dumps(document).encode(), [ALICE.public_key()])
    assert verified.signers == (key_id(ALICE.public_key()),)


def test_a_threshold_counts_keys_and_not_signatures() -> None:
    twice = json.loads(sign(b"{}", [ALICE, ALICE]))
    assert len(twice["signatures"]) == 2
    keys = [ALICE.public_key(), ALICE.public_key(), BOB.public_key()]
    with pytest.raises(Refusal) as caught:
        open_envelope(json.dumps(twice).encode(), keys, threshold=2)
    assert caught.value.code == "GATE-0602"
    assert caught.value.diagnostic.fields["valid"] == 1
    both = open_envelope(sign(b"{}", [ALICE, BOB]), keys, threshold=2)
    assert len(both.signers) == 2


@pytest.mark.parametrize("threshold", [0, -1])
def test_no_threshold_opens_without_a_signature(threshold: int) -> None:
    with pytest.raises(Refusal) as caught:
        open_envelope(sign(b"{}", [ALICE]), [], threshold=threshold)
    assert caught.value.code == "GATE-0602"


def test_a_signature_over_the_bare_payload_does_not_hold() -> None:
    bare = [{"sig": base64.b64encode(ALICE.sign(b"{}")).decode()}]
    with pytest.raises(Refusal) as caught:
        open_envelope(envelope_with(signatures=bare), [ALICE.public_key()])
    assert caught.value.code == "GATE-0602"


def test_an_edited_payload_or_type_does_not_hold() -> None:
    for change in ({"payload": base64.b64encode(b"{ }").decode()}, {"payloadType": "text/plain"}):
        with pytest.raises(Refusal) as caught:
            open_envelope(envelope_with(**change), [ALICE.public_key()])
        assert caught.value.code == "GATE-0602"


@pytest.mark.parametrize(
    "envelope",
    [
        b"[]",
        b"not json",
        envelope_with(signatures=[]),
        envelope_with(signatures=[{"keyid": "x"}]),
        envelope_with(signatures=["x"]),
        envelope_with(payload="not*base64"),
        envelope_with(payload=7),
        envelope_with(payloadType=None),
        sign(b"{}", [ALICE])[:-3] + b',"payload":"e30="}',
    ],
)
def test_a_malformed_envelope_is_refused(envelope: bytes) -> None:
    with pytest.raises(Refusal) as caught:
        open_envelope(envelope, [ALICE.public_key()])
    assert caught.value.code == "GATE-0601"


def test_a_statement_names_its_subjects_by_digest() -> None:
    digest = "sha256:" + hashlib.sha256(b"x").hexdigest()
    payload = make_statement({"b": digest, "a": digest}, {"verdict": "PASS"})
    assert json.loads(payload) == {
        "_type": "https://in-toto.io/Statement/v1",
        "predicateType": "https://numbat.dev/attestations/gate-run/v0.1",
        "subject": [{"name": n, "digest": {"sha256": digest[7:]}} for n in "ab"],
        "predicate": {"verdict": "PASS"},
    }
    statement = read_statement(open_envelope(sign(payload, [ALICE]), [ALICE.public_key()]))
    assert statement.subjects == {"a": digest, "b": digest}
    assert statement.predicate == {"verdict": "PASS"}


SUBJECT = {"name": "report.json", "digest": {"sha256": "a" * 64}}
GOOD = {
    "_type": STATEMENT_TYPE,
    "predicateType": PREDICATE_TYPE,
    "subject": [SUBJECT],
    "predicate": {},
    "a member of a later version": 1,
}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({}, None),
        ({"_type": "https://in-toto.io/Statement/v0.1"}, "GATE-0603"),
        ({"predicateType": "https://slsa.dev/provenance/v1"}, "GATE-0603"),
        ({"subject": []}, "GATE-0604"),
        ({"subject": [{"name": "report.json"}]}, "GATE-0604"),
        ({"subject": [{"name": "report.json", "digest": {"sha1": "a" * 40}}]}, "GATE-0604"),
        ({"subject": [SUBJECT, SUBJECT]}, "GATE-0604"),
        ({"predicate": "PASS"}, "GATE-0604"),
    ],
)
def test_only_a_whole_gate_run_statement_is_read(
    change: dict[str, object], code: str | None
) -> None:
    payload = json.dumps(GOOD | change).encode()
    verified = open_envelope(sign(payload, [ALICE]), [ALICE.public_key()])
    if code is None:
        assert read_statement(verified).subjects == {"report.json": "sha256:" + "a" * 64}
        return
    with pytest.raises(Refusal) as caught:
        read_statement(verified)
    assert caught.value.code == code


def test_another_payload_type_is_refused_although_it_is_signed() -> None:
    envelope = sign(b"{}", [ALICE], payload_type="text/plain")
    with pytest.raises(Refusal) as caught:
        open_envelope(envelope, [ALICE.public_key()])
    assert caught.value.code == "GATE-0603"
    assert caught.value.diagnostic.fields["expected"] == PAYLOAD_TYPE


def test_claimed_keys_can_be_listed_without_trust() -> None:
    assert peek_keyids(sign(b"{}", [ALICE, BOB])) == (
        key_id(ALICE.public_key()),
        key_id(BOB.public_key()),
    )


def test_a_key_is_made_read_back_and_never_overwritten(tmp_path: Path) -> None:
    made = keygen(tmp_path / "keys" / "signer")
    assert stat.S_IMODE(os.stat(made.private).st_mode) == 0o600
    public = load_public_key(made.public)
    assert key_id(public) == made.keyid == key_id(load_public_key(made.private))
    envelope = sign(b"{}", [load_private_key(made.private)])
    assert open_envelope(envelope, [public]).signers == (made.keyid,)
    before = made.private.read_bytes()
    made.public.unlink()
    with pytest.raises(Refusal) as caught:
        keygen(made.private)
    assert caught.value.code == "GATE-0608"
    assert made.private.read_bytes() == before


def test_an_encrypted_key_needs_its_passphrase(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = keygen(tmp_path / "key", passphrase=b"correct horse")
    assert b"ENCRYPTED" in made.private.read_bytes()
    for passphrase in (None, b"wrong"):
        with pytest.raises(Refusal) as caught:
            load_private_key(made.private, passphrase=passphrase)
        assert caught.value.code == "GATE-0609"
    monkeypatch.setenv(PASSPHRASE, "correct horse")
    assert key_id(load_private_key(made.private).public_key()) == made.keyid
    plain = keygen(tmp_path / "plain")
    assert key_id(load_private_key(plain.private).public_key()) == plain.keyid


def test_what_is_no_ed25519_key_is_refused(tmp_path: Path) -> None:
    other = generate_private_key(SECP256R1())
    path = tmp_path / "other.pem"
    path.write_bytes(
        other.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    text = tmp_path / "text.pem"
    text.write_text("no key at all")
    for load in (load_private_key, load_public_key):
        for file in (path, text, tmp_path / "absent"):
            with pytest.raises(Refusal) as caught:
                load(file)
            assert caught.value.code == "GATE-0609"
