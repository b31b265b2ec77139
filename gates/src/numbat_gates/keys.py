"""Ed25519 keys for signing reports: made, written to files, read back, named."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from numbat_registries import refuse

#: Environment variable that holds the passphrase of an encrypted private key.
PASSPHRASE = "NUMBAT_KEY_PASSPHRASE"


@dataclass(frozen=True, slots=True)
class KeyFiles:
    """The two files of a new key, and its name."""

    private: Path
    public: Path
    keyid: str


def keygen(path: str | os.PathLike[str], *, passphrase: bytes | None = None) -> KeyFiles:
    """Make a key: the private half at `path` (mode 0600), the public half at `path` + ".pub".

    Both are PEM (PKCS #8, encrypted when a passphrase is given; SubjectPublicKeyInfo).

    Raises GATE-0608 when either file is already there: a lost key cannot be made again.
    """
    private_path = Path(path)
    public_path = private_path.with_name(f"{private_path.name}.pub")
    for taken in (private_path, public_path):
        if taken.exists():
            raise refuse("GATE-0608", file=str(taken))
    key = Ed25519PrivateKey.generate()
    encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if passphrase:
        encryption = serialization.BestAvailableEncryption(passphrase)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
    )
    private_path.parent.mkdir(parents=True, exist_ok=True)
    # Created with its final mode: between a write and a chmod another user could read it.
    descriptor = os.open(private_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(private)
    public_path.write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    return KeyFiles(private=private_path, public=public_path, keyid=key_id(key.public_key()))


def key_id(key: Ed25519PublicKey) -> str:
    """The name of a key: "sha256:<hex>" over its DER SubjectPublicKeyInfo."""
    der = key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return "sha256:" + hashlib.sha256(der).hexdigest()


def load_private_key(
    path: str | os.PathLike[str], *, passphrase: bytes | None = None
) -> Ed25519PrivateKey:
    """The private key of a PEM file; without `passphrase`, NUMBAT_KEY_PASSPHRASE is used if set.

    Raises GATE-0609 for a file that is absent, encrypted without a passphrase or not Ed25519.
    """
    secret = passphrase or os.environ.get(PASSPHRASE, "").encode() or None
    data = _read(path)
    try:
        try:
            key = serialization.load_pem_private_key(data, password=secret)
        except TypeError:
            # A passphrase that is set for other keys must not spoil a plain one.
            key = serialization.load_pem_private_key(data, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise refuse("GATE-0609", file=str(path), reason=_first_line(error)) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise refuse("GATE-0609", file=str(path), reason=f"a {type(key).__name__}, not Ed25519")
    return key


def load_public_key(path: str | os.PathLike[str]) -> Ed25519PublicKey:
    """The public key of a PEM file; a private key's file also gives its public half.

    Raises GATE-0609 for a file that is absent or holds no Ed25519 key.
    """
    data = _read(path)
    if b"PRIVATE KEY" in data:
        return load_private_key(path).public_key()
    try:
        key = serialization.load_pem_public_key(data)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise refuse("GATE-0609", file=str(path), reason=_first_line(error)) from error
    if not isinstance(key, Ed25519PublicKey):
        raise refuse("GATE-0609", file=str(path), reason=f"a {type(key).__name__}, not Ed25519")
    return key


def _read(path: str | os.PathLike[str]) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise refuse("GATE-0609", file=str(path), reason=error.strerror or str(error)) from error


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
