"""JSON without room for two readings: no repeated member, no NaN, one canonical text."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import rfc8785

from numbat_registries import refuse


class NotStrictJson(Exception):
    """Text that is not JSON, or JSON that two parsers may read as two documents."""


def parse_json(data: bytes) -> Any:
    """The value that the bytes hold.

    Two parsers that keep the first or the last of a repeated member would read two documents out
    of one signature, so a repetition is a fault.

    Raises NotStrictJson, which callers turn into their own code, for text that is not UTF-8 or not
    JSON, repeats a member or holds NaN or an infinity. Source: RFC 8259 §4, §6; RFC 7493 §2.
    """
    try:
        return json.loads(
            data.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant
        )
    except (ValueError, RecursionError) as error:
        raise NotStrictJson(str(error)) from error


def canonical_json(value: Any) -> bytes:
    """The one text of a JSON value: sorted members, no blanks, shortest numbers, UTF-8.

    Raises GATE-0607 for what has no such text: NaN, an infinity, an integer beyond ±(2^53 - 1), a
    lone surrogate, a type that JSON lacks. Source: RFC 8785 (JCS).
    """
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, RecursionError) as error:
        raise refuse("GATE-0607", reason=str(error)) from error


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise NotStrictJson(f"the member {name!r} occurs twice in one object")
        members[name] = value
    return members


def _no_constant(name: str) -> Any:
    raise NotStrictJson(f"{name} is not JSON")
