"""Text of a data set in the character sets that it declares (PS3.5 §6.1, PS3.3 C.12.1.1.2)."""

from __future__ import annotations

import warnings
from functools import lru_cache

from pydicom.charset import decode_bytes, python_encoding

DEFAULT_ENCODING = "iso8859"
_ESCAPE = 0x1B
_DELIMITERS = {0x0A, 0x0C, 0x0D, 0x09, 0x5C}


@lru_cache(maxsize=256)
def encodings_of(declared: bytes | None) -> tuple[tuple[str, ...], tuple[bytes, ...]]:
    """The codecs of a SpecificCharacterSet value, and the terms that are none of the standard's.

    An unknown or absent term means the default repertoire.
    """
    terms = [term.strip(b"\0 ") for term in (declared or b"").split(b"\\")]
    codecs, unknown = [], []
    for term in terms:
        codec = python_encoding.get(_usual_form(term.decode("ascii", "replace")))
        if codec is None:
            unknown.append(term)
        codecs.append(codec or DEFAULT_ENCODING)
    return tuple(codecs), tuple(unknown)


def _usual_form(term: str) -> str:
    # "ISO IR 100", "ISO-IR 100", "ISO_IR_100" are slips that mean one thing.
    if term in python_encoding:
        return term
    letters = term.upper().replace("_", " ").replace("-", " ").split()
    if letters[:2] == ["ISO", "IR"]:
        return "ISO_IR " + " ".join(letters[2:])
    if letters[:2] == ["ISO", "2022"]:
        return "ISO 2022 IR " + " ".join(letters[3:])
    return term


def decode_text(value: bytes, encodings: tuple[str, ...]) -> tuple[str, bool]:
    """The text, and whether all its bytes had a meaning; those without become U+FFFD."""
    if value.isascii() and _ESCAPE not in value:
        return value.decode("ascii"), True
    if len(encodings) > 1 or _ESCAPE in value:
        return _with_extensions(value, encodings)
    codec = encodings[0] if encodings else DEFAULT_ENCODING
    if codec == DEFAULT_ENCODING:
        # The default repertoire is ASCII: other bytes mean nothing in it, whatever they often are.
        return value.decode("ascii", "replace"), False
    try:
        return value.decode(codec), True
    except (UnicodeDecodeError, LookupError):
        return value.decode("utf-8" if codec == "utf8" else "ascii", "replace"), False


def _with_extensions(value: bytes, encodings: tuple[str, ...]) -> tuple[str, bool]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            text = decode_bytes(value, list(encodings), _DELIMITERS)
        except (UnicodeError, LookupError, ValueError):
            return value.decode("ascii", "replace"), False
    return text, not caught and "\ufffd" not in text
