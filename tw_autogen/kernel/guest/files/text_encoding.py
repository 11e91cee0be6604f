"""`find_encoding`: the encoding of a text by its mark, else UTF-8 if it can be that, else by its letters."""

from __future__ import annotations

import codecs
import itertools
import re
import unicodedata
from collections import Counter
from functools import lru_cache

from .plural import pluralize

_BOMS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""In this order: the mark of UTF-32 begins with that of UTF-16."""
UTF8 = ("utf-8", "utf-8-sig")
_OTHERS = ("mac_roman", "cp1250", "cp1254", "cp850", "cp852", "iso8859_2", "cp1257")
_WESTERN = ("cp1252", "latin-1")
LATIN = (*_WESTERN, *_OTHERS)
"""Encodings of Latin letters, the most usual one first; `latin-1` where bytes mean nothing in cp1252."""
_ALPHABETS = (
    "äöüß", "àâæçéèêëîïôœùûüÿ", "áéíñóúüªº", "áâãàçéêíóôõúüªº", "àèéìíîòóùú", "åäöé", "æøåéêòóôö",
    "áéëïóöüèí", "àçèéíïòóúü·", "äõöüšž", "ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž", "áéíóöőúüű",
    "ăâîșțşţ", "čćđšž", "çğıöşüâîû", "ąčęėįšųūž", "āčēģīķļņšūž", "áéíóúýþæöð",
)  # fmt: skip
"""The letters beyond ASCII of languages of Europe: up to Catalan of the West, and last of Iceland."""
_WESTERN_COUNT = 9
_LETTERS = tuple(frozenset(f"{alphabet}{alphabet.upper()}" + "İ" * ("ı" in alphabet)) for alphabet in _ALPHABETS)
_RARER = 0.001
"""What each language counts less than the one before it."""
_COUNTED = (
    *((letter, 1 - _RARER * index) for index, letter in enumerate(_LETTERS)),
    (frozenset().union(*_LETTERS[:_WESTERN_COUNT], _LETTERS[-1]), 0.7),
    (frozenset().union(*_LETTERS[_WESTERN_COUNT:-1]), 0.65),
)
"""Letters and what they count: of a language, and less of several, as in names of places or people."""
_MIN_SCORE, _AS_WELL = 0.5, 0.03
_SIGNS_IN_WORDS = "’‘–—·"
_SIGNS_BEFORE_WORDS = f"{_SIGNS_IN_WORDS}\xb5“”„«»¿¡‚…\xa0§€£°"
_MICRO = re.compile(r"\xb5(?:[gmsAVFLlNWJ]|mol|Pa|Sv)(?![^\W\d])")
_ALONE = frozenset("àéèóíöåÀÉÈÖÅ")
"""Letters that are words."""
_MARK, _BYTE = re.compile(r"[^\x00-\x7f]"), re.compile(rb"[^\x00-\x7f]")
_LATIN_BYTES, _MAX_MARKS = 200_000, 10_000
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
_DIGITS_AND_SIGNS = re.compile(rb"[\x00-\x3f]+")
"""Beside many of them few letters are hard to tell; none is the second byte of one."""
_GUESSED_BYTES, _MIN_GUESSED, _FEW_LETTERS = 8192, 4, 30
_CHAOS_AS_WELL, _COHERENT_AS_WELL, _MAX_OTHERS = 0.02, 0.6, 3
_FOREIGN = 0.8
"""So many letters beyond ASCII of a text that is not Western stand beside another."""
GUESSED = (
    *("gb18030", "big5", "big5hkscs", "cp932", "euc_jp", "cp949", "johab"),
    *("cp1251", "koi8_r", "koi8_u", "cp866", "cp1253", "cp1255", "cp1256", "cp874"),
    *("iso8859_5", "iso8859_6", "iso8859_7", "iso8859_8"),
)
"""Encodings that only a look at the letters tells, of several that fit the first one."""
_FEW_BROKEN, _MIN_LETTERS = 2, 5
"""So many letters of UTF-8 stand for each place that is not in a text of UTF-8 with a few wrong bytes, and in all."""
_EURO = re.compile(rb"\d ?\xa4|\xa4 ?\d")
"""The sign of the euro in ISO 8859-15, beside a number; elsewhere it is one that nobody writes."""
_NOT_WINDOWS = {0x81, 0x8D, 0x8F, 0x90, 0x9D}
"""Bytes that mean nothing in cp1252."""


def find_encoding(start: bytes) -> str:
    """Return the encoding of a text by its byte order mark, else UTF-8 if it can be that, else by its letters.

    UTF-8 may have a few wrong bytes, such as a line of another file, or a letter that was cut.
    """
    for mark, name in _BOMS.items():
        if start.startswith(mark):
            return name
    if start[1:200:2].count(0) > len(start[1:200:2]) // 2:
        return "utf-16-le"
    if start[:200:2].count(0) > len(start[:200:2]) // 2:
        return "utf-16-be"
    if b"\x1b$B" in start and start.isascii():
        return "iso2022_jp"
    if can_be_utf8(start) or _is_broken_utf8(start):
        return "utf-8"
    if guessed := _guessed_encodings(_guessed_part(start)):
        return guessed[0]
    latin = latin_encodings(start)[0]
    return "iso8859_15" if latin == "cp1252" and _EURO.search(start) else latin


def latin_encodings(text: bytes) -> list[str]:
    """Return the encodings by which a text has words of one language, as far as its letters tell, the likeliest first.

    Several are returned if they fit as well and stand for other letters.
    """
    text = text[:_LATIN_BYTES]
    windows = "latin-1" if set(text) & _NOT_WINDOWS else "cp1252"
    scores: dict[str, float] = {}
    read: set[str] = set()
    for name in (windows, *_OTHERS):
        decoded = text.decode(name, "replace")
        if decoded not in read:
            read.add(decoded)
            scores[name] = _letters_score(decoded)
    best = max(scores.values())
    if best < _MIN_SCORE or scores[windows] == 1:
        return [windows]
    return [score for score in sorted(scores, key=scores.__getitem__, reverse=True) if scores[score] > best - _AS_WELL]


def _letters_score(text: str) -> float:
    """Return which part of the letters beyond ASCII are of one language; less for what can't stand where it does.

    Quotes around words, dashes between them and dots behind them count as letters of any language.
    """
    letters, signs, wrong = Counter[str](), Counter[str](), 0
    for match in itertools.islice(_MARK.finditer(text), _MAX_MARKS):
        sign, position = match[0], match.start()
        before, after = text[position - 1 : position], text[position + 1 : position + 2]
        if sign == "\xb5" or not sign.isalpha():
            within = before.isalpha() and after.isalpha() and sign not in _SIGNS_IN_WORDS
            nonsense = (
                unicodedata.category(sign) in ("Cc", "Co", "Cn") or sign == "\ufffd" or "\u2500" <= sign <= "\u259f"
            )
            wrong += within or nonsense or (after.isalpha() and sign not in _SIGNS_BEFORE_WORDS)
            opens = bool(after.strip()) and not before.isalnum()
            closes = bool(before.strip()) and not after.isalnum()
            known = (
                bool(_MICRO.match(text, position))
                if sign == "\xb5"
                else before.isalnum() and after.isalnum() != (sign in "®™")
            )
            signs[sign] += opens if sign == "“" else closes if sign in "”…" else known
        elif before.isalpha() or after.isalpha():
            letters[sign] += 1
            wrong += sign.isupper() and before.islower()
        else:
            wrong += sign not in _ALONE
    fits = max(share * sum(n for sign, n in letters.items() if sign in one) for one, share in _COUNTED)
    right = 2 * min(signs["“"], signs["”"]) + sum(signs[one] for one in "…–®™\xb5")
    return (fits + right - wrong) / max(1, sum(letters.values()) + right + wrong)


def _guessed_part(text: bytes) -> bytes:
    """Return whole lines of a text, with the first letters beyond ASCII."""
    if (found := _BYTE.search(text)) and found.start() >= _GUESSED_BYTES // 2:
        text = text[text.rfind(b"\n", 0, found.start()) + 1 :]
    text = text[:_GUESSED_BYTES]
    return text[: text.rfind(b"\n") + 1] or text


@lru_cache(maxsize=8)
def _guessed_encodings(text: bytes) -> list[str]:
    """Return the encodings of a text whose words are of other than Western letters, the likeliest first.

    Several are returned if they stand for other letters and fit nearly as well; none if none can be told.
    """
    try:
        from charset_normalizer import from_bytes  # a kernel's own Python need not have it
    except ImportError:
        return []
    foreign = _is_foreign(text.decode("latin-1"))
    found = from_bytes(text, cp_isolation=[*GUESSED, "cp1252"])
    if found and foreign and "cp1252" in found[0].could_be_from_charset:
        found = from_bytes(_DIGITS_AND_SIGNS.sub(b"\n", text), cp_isolation=list(GUESSED))
    if not found or "cp1252" in found[0].could_be_from_charset:
        return []
    lengths = [len(match) for match in _BEYOND_ASCII.findall(str(found[0]))]
    alone = not foreign and 2 * sum(length for length in lengths if length > 1) <= sum(lengths)
    if alone or sum(lengths) < _MIN_GUESSED:
        return []
    fitting = [
        one
        for one in found
        if one.chaos <= found[0].chaos + _CHAOS_AS_WELL and one.coherence >= _COHERENT_AS_WELL * found[0].coherence
    ]
    names = (next((name for name in GUESSED if name in one.could_be_from_charset), "") for one in fitting)
    return list(dict.fromkeys(filter(None, names)))


def _is_broken_utf8(text: bytes) -> bool:
    """Return whether most letters beyond ASCII are valid UTF-8."""
    decoded = text.decode("utf-8", "replace")
    letters = len(decoded) - len(decoded.encode("ascii", "ignore")) - decoded.count("\ufffd")
    broken = count_invalid_utf8(text)
    return letters >= max(_MIN_LETTERS, _FEW_BROKEN * broken) if broken else letters > 0


def count_invalid_utf8(text: bytes) -> int:
    """Return how many places of a piece of a text are not UTF-8; letters that are cut at its ends are none."""
    if text.isascii():
        return 0
    decoded = codecs.getincrementaldecoder("utf-8")("replace").decode(_from_first_letter(text))
    return decoded.count("\ufffd") - text.count("\ufffd".encode())


def encoding_words(encoding: str, text: str, *, broken: int = 0) -> str:
    """Return the encoding of a text behind a comma, and what is not certain of it; empty for whole UTF-8.

    Args:
        encoding: As it was recognized.
        text: The text, or its beginning.
        broken: How many places of UTF-8 are not.
    """
    if encoding in UTF8 and broken:
        return f", {encoding} with bytes that are not in {pluralize(broken, 'place')}"
    if encoding == "utf-8":
        return ""
    if encoding in GUESSED:
        part = _guessed_part(text.encode(encoding, "replace"))
        others = [one for one in _guessed_encodings(part) if one != encoding][:_MAX_OTHERS]
        few = len(_BYTE.findall(part)) < _FEW_LETTERS
        may = f"; it may be {' or '.join([*others, 'another one'])}" if others or few else ""
        return f", {encoding} (guessed by its letters{may})"
    if encoding not in LATIN:
        return f", {encoding}"
    if encoding in _WESTERN and _is_foreign(text):
        return f", {encoding} or an encoding of other letters (cp1251, cp1255, cp1256, gb18030, big5, shift_jis …)"
    others = [one for one in latin_encodings(text.encode(encoding, "replace")) if one != encoding]
    if others:
        return f", {encoding} or {' or '.join(others)}, which its letters don't tell"
    return f", {encoding}" + ("" if encoding in _WESTERN else " (guessed by its letters)")


def _is_foreign(text: str) -> bool:
    """Return whether nearly all letters beyond ASCII, several, stand side by side, as Western ones do not."""
    lengths = [len(letters) for letters in _BEYOND_ASCII.findall(text)]
    return sum(lengths) >= _MIN_GUESSED and sum(one for one in lengths if one > 1) > _FOREIGN * sum(lengths)


def late_encoding(text: bytes) -> str:
    """Return the encoding of a later piece of a text of which the beginning is ASCII."""
    return "utf-8" if text.isascii() or can_be_utf8(_from_first_letter(text)) else find_encoding(text)


def _from_first_letter(piece: bytes) -> bytes:
    """Return a piece of a text without what may be the end of a letter of UTF-8 in front."""
    return piece[next((index for index, byte in enumerate(piece[:4]) if not 0x80 <= byte < 0xC0), 0) :]


def can_be_utf8(piece: bytes) -> bool:
    """Return whether a piece of a text can be UTF-8; its last letter may be cut."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(piece)
    except UnicodeDecodeError:
        return False
    return True
