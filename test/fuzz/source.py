"""Random choices of one input, and mutations of text, bytes and plain values."""

import math
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, TypeVar

T = TypeVar("T")

ODD_NUMBERS = (
    0.0, -0.0, 1.0, -1.0, 0.1, 1e-3, 1e-9, 1e-12, 5e-324, -5e-324, 1e-300, 1e16, 1e300, -1e300, 1.7e308,
    math.nan, math.inf, -math.inf, 3.141592653589793, 1e4, 10001.0, 2.0**53,
)  # fmt: skip
ODD_WHOLE = (0, 1, -1, 2, 3, 7, 255, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 10**30, -(10**400), 10**5000)
ODD_NAMES = (
    "", " ", "*", "a b", "\n", "\t", "..", "../..", "/", "/etc/passwd", "/dev/zero", "~", "a" * 201, "a" * 5000, "é",
    "日本", "𝔘", "%s", "{}", "${x}", "$(find x)", "&amp;", "<a/>", "null", "true", "yes", "0x10", "1e5", "world",
    "base", "tip", "a\x1bb", "\u202e", "'", '"', "\\", "-", "--help", "__class__", "package://x/y", "file:///dev/zero",
)  # fmt: skip
ODD_TEXTS = (
    "", "nan", "inf", "-inf", "1e400", "1_0", "0x1p3", "١", "1 2", "1 2 3", "1 2 3 4", "0 0 0", "1e300 1e300 1e300",
    "5e-324 5e-324 5e-324", "1,2,3", "1e16", "-1e16", "1e-320", "--1", "true", "9" * 400,
)  # fmt: skip


class Source(Random):
    """Source of random choices, from which one input is made."""

    def often(self, share: float) -> bool:
        """True in that share of the cases."""
        return self.random() < share

    def name(self, known: Sequence[str] = ()) -> str:
        """A name, mostly one that is known."""
        if known and self.often(0.6):
            return self.choice(known)
        if self.often(0.7):
            return self.choice(ODD_NAMES)
        return "".join(
            chr(self.choice((65, 97, 48, 32, 233, 8364, 128512))) for _ in range(self.randrange(12))
        )

    def number(self) -> float:
        """A number, odd or not."""
        return self.choice(ODD_NUMBERS) if self.often(0.5) else self.uniform(-3.0, 3.0)

    def few(self) -> int:
        """Return how many of something to make: rarely many."""
        return self.choice((0, 1, 1, 2, 2, 3, 5, 8)) if self.often(0.97) else self.choice((50, 300))

    def value(self, depth: int = 0) -> Any:
        """Any plain value."""
        makers: list[Callable[[], Any]] = [
            lambda: None,
            lambda: self.often(0.5),
            self.number,
            lambda: self.choice(ODD_WHOLE),
            self.name,
            lambda: self.choice(ODD_TEXTS),
        ]
        if depth < 3:
            makers += [
                lambda: [self.value(depth + 1) for _ in range(self.few())],
                lambda: {self.name(): self.value(depth + 1) for _ in range(self.few())},
            ]
        return self.choice(makers)()

    def changed(self, value: T, share: float = 0.05) -> Any:
        """A copy of a plain value in which some parts are others, missing, or there twice."""
        if self.often(share):
            return self.value() if self.often(0.7) else self._times(value)
        if isinstance(value, dict):
            made = {}
            for key, part in value.items():
                if not self.often(share / 2):
                    made[self.name() if self.often(share / 3) else key] = self.changed(part, share)
            if self.often(share):
                made[self.name(list(value))] = self.value()
            return made
        if isinstance(value, list):
            parts = [self.changed(part, share) for part in value if not self.often(share / 3)]
            if parts and self.often(share):
                parts += [self.choice(parts)] * self.few()
            return parts
        if isinstance(value, float | int) and not isinstance(value, bool) and self.often(share):
            return self.number()
        return value

    def _times(self, value: Any) -> Any:
        return [value] * self.few() if not isinstance(value, str) else value * self.few()

    def torn(self, text: str) -> str:
        """A text with pieces cut out, put in, doubled or moved."""
        for _ in range(self.choice((0, 1, 1, 2, 5))):
            start, length = self.randrange(len(text) + 1), self.choice((1, 1, 2, 5, 20, 200))
            piece = self.choice(
                ("", "", text[start : start + length] * 2, "\0", "\ud800", "<", ">", '"', "&", "\n", "[", "{", "#",
                 "&x;", "<!DOCTYPE a>", "*a", "&a ", "!!python/object ", "- ", ": ", "0", "-", "e9", "," , "\ufeff",
                 "]]>", "<!--", "<![CDATA[", "\x01", *ODD_TEXTS)
            )  # fmt: skip
            text = text[:start] + piece + text[start + self.choice((0, length)) :]
        return text

    def torn_bytes(self, content: bytes) -> bytes:
        """Return bytes with random damage, cut off now and then."""
        for _ in range(self.choice((0, 1, 1, 2, 5, 30))):
            start, length = self.randrange(len(content) + 1), self.choice((1, 1, 2, 4, 20, 200))
            piece = self.choice(
                (b"", b"\0" * length, b"\xff" * length, self.randbytes(length), content[start : start + length] * 2,
                 b"\x7f\xff\xff\xff", b"\0\0\0\x80", b"999999999", b"-1", b"nan", b"1e999", b" ", b"\n")
            )  # fmt: skip
            content = content[:start] + piece + content[start + self.choice((0, length, len(piece))) :]
        return content if self.often(0.95) else content[: self.randrange(len(content) + 1)]
