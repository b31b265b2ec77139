"""Signed statements about a run: in-toto Statement v1 in a DSSE envelope, signed with Ed25519.

Sources: DSSE v1 (protocol and envelope); in-toto Attestation Framework, Statement v1; RFC 8032.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from numbat_gates.keys import key_id
from numbat_gates.strict_json import NotStrictJson, canonical_json, parse_json
from numbat_registries import refuse

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://numbat.dev/attestations/gate-run/v0.1"


@dataclass(frozen=True, slots=True)
class VerifiedPayload:
    """The bytes that were signed, and the names of the keys whose signatures hold for them."""

    payload: bytes
    payload_type: str
    signers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """What a gate-run statement says: artefact digests ("sha256:<hex>") by name, and the run."""

    subjects: Mapping[str, str]
    predicate: Mapping[str, Any]


def pae(payload_type: str, body: bytes) -> bytes:
    """The pre-authentication encoding: what is signed instead of the bare payload.

    Lengths count bytes, not characters. Source: DSSE v1 protocol, "PAE".
    """
    kind = payload_type.encode("utf-8")
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(body), body)


def sign(
    payload: bytes, keys: Sequence[Ed25519PrivateKey], *, payload_type: str = PAYLOAD_TYPE
) -> bytes:
    """A DSSE envelope of the payload with one signature for each key, as JSON bytes."""
    message = pae(payload_type, payload)
    envelope = {
        "payloadType": payload_type,
        "payload": base64.standard_b64encode(payload).decode("ascii"),
        "signatures": [
            {
                "keyid": key_id(key.public_key()),
                "sig": base64.standard_b64encode(key.sign(message)).decode("ascii"),
            }
            for key in keys
        ],
    }
    return canonical_json(envelope) + b"\n"


def open_envelope(
    envelope: bytes,
    keys: Sequence[Ed25519PublicKey],
    *,
    threshold: int = 1,
    payload_type: str = PAYLOAD_TYPE,
) -> VerifiedPayload:
    """Check an envelope and give the very bytes that were signed.

    Use those bytes: what a second parse of the envelope would give has not been verified. Every
    signature is tried with every key, since `keyid` is unauthenticated; `threshold` counts
    different keys, so that one key cannot sign twice.

    Raises GATE-0601 for an envelope that is malformed, GATE-0602 when fewer than `threshold`
    different keys signed it, GATE-0603 for another type of payload.
    """
    body, kind, signatures = _parse_envelope(envelope)
    message = pae(kind, body)
    unique = {key.public_bytes_raw(): key for key in keys}
    signers = sorted(key_id(key) for key in unique.values() if _signed(key, signatures, message))
    if threshold < 1 or len(signers) < threshold:
        raise refuse(
            "GATE-0602",
            threshold=threshold,
            valid=len(signers),
            signatures=len(signatures),
            keys=sorted(key_id(key) for key in unique.values()),
        )
    if kind != payload_type:
        raise refuse("GATE-0603", part="payloadType", expected=payload_type, found=kind)
    return VerifiedPayload(payload=body, payload_type=kind, signers=tuple(signers))


def peek_keyids(envelope: bytes) -> tuple[str, ...]:
    """The key names that an envelope claims: a hint for choosing keys, never evidence.

    Raises GATE-0601 for an envelope that is malformed.
    """
    document = _envelope_object(envelope)
    claimed = (entry.get("keyid") for entry in document["signatures"] if isinstance(entry, dict))
    return tuple(keyid for keyid in claimed if isinstance(keyid, str))


def make_statement(subjects: Mapping[str, str], predicate: Mapping[str, Any]) -> bytes:
    """An in-toto Statement over artefacts given as name → "sha256:<hex>", in canonical JSON."""
    return canonical_json(
        {
            "_type": STATEMENT_TYPE,
            "subject": [
                {"name": name, "digest": {"sha256": digest.removeprefix("sha256:")}}
                for name, digest in sorted(subjects.items())
            ],
            "predicateType": PREDICATE_TYPE,
            "predicate": dict(predicate),
        }
    )


def read_statement(verified: VerifiedPayload) -> Statement:
    """The statement in verified bytes; members that this version does not know are passed over.

    Raises GATE-0603 for another type of statement or predicate, GATE-0604 when a subject has no
    SHA-256 digest or the statement is otherwise malformed.
    """
    try:
        document = parse_json(verified.payload)
    except NotStrictJson as error:
        raise refuse("GATE-0604", reason=str(error)) from error
    if not isinstance(document, dict):
        raise refuse("GATE-0604", reason="it is not a JSON object")
    for part, expected in (("_type", STATEMENT_TYPE), ("predicateType", PREDICATE_TYPE)):
        if document.get(part) != expected:
            raise refuse(
                "GATE-0603", part=part, expected=expected, found=str(document.get(part, "absent"))
            )
    subjects = document.get("subject")
    predicate = document.get("predicate")
    if not isinstance(subjects, list) or not subjects or not isinstance(predicate, dict):
        raise refuse("GATE-0604", reason="it has no subject or no predicate")
    named = dict(map(_subject, subjects))
    if len(named) != len(subjects):
        raise refuse("GATE-0604", reason="two subjects have one name")
    return Statement(subjects=named, predicate=predicate)


def gate_run_predicate(report: Mapping[str, Any]) -> dict[str, Any]:
    """What a signature says of a run beyond its bytes: enough for a policy to decide on.

    Members: plane, version, phase, verdict, exit_code, started_at, verdicts of phases and gates,
    the ledger's head and length, and the number of undischarged clauses.
    """
    return {
        "plane": report["plane"],
        "version": report["version"],
        "phase": report["phase"],
        "verdict": report["verdict"],
        "exit_code": report["exit_code"],
        "started_at": report["started_at"],
        "phases": {str(phase["phase"]): phase["verdict"] for phase in report["phases"]},
        "gates": {gate["id"]: gate["verdict"] for gate in report["gates"]},
        "undischarged": len(report["undischarged"]),
        "ledger": {"head": report["ledger"]["head"], "length": report["ledger"]["length"]},
    }


def _parse_envelope(envelope: bytes) -> tuple[bytes, str, list[bytes]]:
    document = _envelope_object(envelope)
    kind = document.get("payloadType")
    payload = document.get("payload")
    if not isinstance(kind, str) or not isinstance(payload, str):
        raise refuse("GATE-0601", reason="payload and payloadType must be strings")
    signatures = []
    for entry in document["signatures"]:
        if not isinstance(entry, dict) or not isinstance(entry.get("sig"), str):
            raise refuse("GATE-0601", reason="a signature has no sig")
        signatures.append(_decode(entry["sig"], part="sig"))
    return _decode(payload, part="payload"), kind, signatures


def _envelope_object(envelope: bytes) -> dict[str, Any]:
    try:
        document = parse_json(envelope)
    except NotStrictJson as error:
        raise refuse("GATE-0601", reason=str(error)) from error
    if not isinstance(document, dict) or not isinstance(document.get("signatures"), list):
        raise refuse("GATE-0601", reason="it is not an object with a list of signatures")
    if not document["signatures"]:
        raise refuse("GATE-0601", reason="it holds no signature")
    return document


def _decode(text: str, *, part: str) -> bytes:
    # DSSE lets a signer use either alphabet, and a verifier must take both.
    try:
        return base64.b64decode(text.translate(str.maketrans("-_", "+/")), validate=True)
    except (binascii.Error, ValueError) as error:
        raise refuse("GATE-0601", reason=f"{part} is not base64: {error}") from error


def _signed(key: Ed25519PublicKey, signatures: Sequence[bytes], message: bytes) -> bool:
    for signature in signatures:
        try:
            key.verify(signature, message)
        except InvalidSignature:
            continue
        return True
    return False


def _subject(entry: Any) -> tuple[str, str]:
    name = entry.get("name") if isinstance(entry, dict) else None
    digests = entry.get("digest") if isinstance(entry, dict) else None
    sha256 = digests.get("sha256") if isinstance(digests, dict) else None
    if not isinstance(name, str) or not isinstance(sha256, str) or len(sha256) != 64:
        raise refuse("GATE-0604", reason="a subject lacks its name or its SHA-256 digest")
    return name, f"sha256:{sha256.lower()}"
