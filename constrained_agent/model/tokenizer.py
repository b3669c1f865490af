"""Text to ids and back, with a hard line between the harness's markers and everybody else's text.

Untrusted text (files, tool results, the user) is encoded by a *plain* encoder that knows neither special
tokens nor a normalizer: `<|im_end|>` in a file stays eleven letters, decomposed accents stay decomposed.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import tokenizers

from constrained_agent.errors import ModelError


@dataclass(frozen=True, slots=True)
class Untrusted:
    """Text from outside: files, tool results, the user. Nothing in it is a marker."""

    text: str


class Tokenizer:
    """The ids of one model. Costs about a second for 150,000 tokens: build once, keep.

    Attributes:
        vocab_size: ids that exist; the model's logits may be wider.
        token_bytes: bytes of every id; for a special token, its name.
        special_ids: added tokens and unused ids: never produced by text.
        end_ids: ids that end a turn, the usual one first.
        blank_ids: ids of white space alone.
    """

    def __init__(self, tokenizer_json: str, end_tokens: Iterable[str]) -> None:
        """Read a `tokenizer.json`.

        Raises:
            ModelError: its kind is not supported, it lacks an end token, or its bytes do not round-trip.
        """
        try:
            spec, self._plain = _read(tokenizer_json)
        # An edge: what the library says of a file that it cannot read is a bare Exception.
        except Exception as error:
            raise ModelError(f"tokenizer.json cannot be read: {error}; fetch the model anew") from error
        added = {entry["id"]: entry["content"] for entry in spec.get("added_tokens", [])}
        self._id_of = {content: token for token, content in added.items()}
        self.token_bytes, unused = _byte_table(spec, added)
        self.vocab_size = len(self.token_bytes)
        self.special_ids = sorted({*added, *unused})
        self._letters = {data[0] for data in self.token_bytes if len(data) == 1}
        self.blank_ids = frozenset(i for i, data in enumerate(self.token_bytes) if data and not data.strip())
        missing = [name for name in end_tokens if name not in self._id_of]
        if missing:
            raise ModelError(
                f"the tokenizer has no token {missing[0]!r}, which the model card names as an end token"
            )
        self.end_ids = [self._id_of[name] for name in end_tokens]
        self._markers = re.compile(
            "|".join(map(re.escape, sorted(self._id_of, key=len, reverse=True))) or "(?!)"
        )
        self._check(set(self.special_ids))

    def encode_plain(self, text: str) -> list[int]:
        """Ids of untrusted text; never a special one. Cost: about 1 microsecond a character.

        Bytes that were not UTF-8 (lone surrogates in `text`) are encoded as U+FFFD.
        """
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return list(self._plain.encode(text, add_special_tokens=False).ids)

    def encode(self, *pieces: str | Untrusted) -> list[int]:
        """Ids of a text that is put together from the harness's own text and untrusted pieces.

        In plain `str` pieces the name of a special token stands for that token. Text between two special
        tokens is encoded as a whole, across pieces, as the model's own tokenizer would.
        """
        runs: list[str | int] = [""]
        for piece in pieces:
            for part in [piece.text] if isinstance(piece, Untrusted) else self._split(piece):
                if isinstance(part, str) and isinstance(runs[-1], str):
                    runs[-1] += part
                else:
                    runs.append(part)
        return [
            token for run in runs for token in ([run] if isinstance(run, int) else self.encode_plain(run))
        ]

    def _split(self, text: str) -> list[str | int]:
        """The harness's own text, cut at special tokens."""
        parts: list[str | int] = []
        start = 0
        for found in self._markers.finditer(text):
            parts += [text[start : found.start()], self._id_of[found.group()]]
            start = found.end()
        return [*parts, text[start:]]

    def special(self, name: str) -> int | None:
        """The id of a special token, or None if the tokenizer has none of that name."""
        return self._id_of.get(name)

    def can_spell(self, text: str) -> bool:
        """Whether the ids of a text give the text back: small vocabularies lack some bytes."""
        try:
            data = text.encode()
        except UnicodeEncodeError:
            return False
        return self._letters.issuperset(data) or self.bytes_of(self.encode_plain(text)) == data

    def bytes_of(self, ids: Iterable[int]) -> bytes:
        """The bytes of ids, special tokens as their names."""
        return b"".join(self.token_bytes[token] for token in ids)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids, decoded once as a whole; bytes that are not UTF-8 become U+FFFD."""
        return self.bytes_of(ids).decode("utf-8", "replace")

    def _check(self, special: set[int]) -> None:
        """Compare the byte table with the tokenizer's own decoder, id by id.

        A grammar over wrong bytes masks the wrong tokens; better no start than that. The encoder is checked too:
        one that drops or adds characters would make forced text other text.
        """
        ordinary = [token for token in range(self.vocab_size) if token not in special]
        decoded = self._plain.decode_batch([[token] for token in ordinary], skip_special_tokens=False)
        for token, text in zip(ordinary, decoded, strict=True):
            if self.token_bytes[token].decode("utf-8", "replace") != text:
                raise ModelError(
                    f"the tokenizer's token {token} decodes to {text!r}, but its bytes are "
                    f"{self.token_bytes[token]!r}: this kind of tokenizer is not supported"
                )
        for text in _PROBES:
            if self.decode(found := self.encode_plain(text)) != text:
                raise ModelError(
                    f"the tokenizer turns {text!r} into {self.decode(found)!r}: it is not supported"
                )


_PROBES = ("a", " a b", "a\nb\n\n  c", "x = {1: 'y'};\t# z", "Hello, world! 123")
"""Texts that every vocabulary for code can spell."""


def _read(tokenizer_json: str) -> tuple[dict[str, Any], tokenizers.Tokenizer]:
    spec = json.loads(tokenizer_json)
    return spec, tokenizers.Tokenizer.from_str(json.dumps(_without_extras(spec)))


class StreamDecoder:
    """Ids to text as they come: a character split over several tokens is held back until it is whole."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, ids: Sequence[int]) -> str:
        """The text that became whole with these ids."""
        return self._utf8.decode(self._tokenizer.bytes_of(ids))

    def finish(self) -> str:
        """What is left at the end, U+FFFD for a character that never became whole."""
        return self._utf8.decode(b"", final=True)


def _without_extras(spec: dict[str, Any]) -> dict[str, Any]:
    return {
        **spec,
        "added_tokens": [],
        "normalizer": None,
        "post_processor": None,
        "truncation": None,
        "padding": None,
    }


def _byte_table(spec: dict[str, Any], added: dict[int, str]) -> tuple[list[bytes], list[int]]:
    """Bytes of every id, and the ids that the vocabulary skips.

    Raises:
        ModelError: not a byte-level BPE tokenizer.
    """
    model = spec["model"]
    if model.get("type") != "BPE" or "ByteLevel" not in json.dumps(spec.get("decoder")):
        raise ModelError(
            f"tokenizer of kind {model.get('type')}, decoder {(spec.get('decoder') or {}).get('type')}: "
            "only byte-level BPE is supported (Qwen, Llama 3, SmolLM)"
        )
    byte_of = _byte_letters()
    table: list[bytes | None] = [None] * (1 + max([*model["vocab"].values(), *added]))
    for letters, token in model["vocab"].items():
        if token not in added:
            try:
                table[token] = bytes(byte_of[letter] for letter in letters)
            except KeyError as error:
                raise ModelError(
                    f"token {token} of the tokenizer is not byte-level: {error} stands for no byte"
                ) from None
    for token, content in added.items():
        table[token] = content.encode()
    unused = [token for token, found in enumerate(table) if found is None]
    return [
        f"<|unused_{token}|>".encode() if found is None else found for token, found in enumerate(table)
    ], unused


def _byte_letters() -> dict[str, int]:
    """The letters by which byte-level BPE writes bytes (GPT-2): printable Latin-1 bytes stand for
    themselves, the other 68 for the code points from 256 up, in order."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(hidden)}
