"""`safe_svg`: an SVG picture written anew with nothing in it that could run, load or send anything."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from tw_autogen.errors import TwAutogenError
from tw_autogen.lazy_module import LazyModule

if TYPE_CHECKING:
    from xml.parsers import expat
    from xml.sax import saxutils
else:
    expat = LazyModule("xml.parsers.expat")
    saxutils = LazyModule("xml.sax.saxutils")  # brings in urllib.request

_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"
_XML = "http://www.w3.org/XML/1998/namespace"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ELEMENTS = _words(
    """svg g defs symbol use path rect circle ellipse line polyline polygon text tspan textPath image clipPath mask
    pattern marker linearGradient radialGradient stop filter feBlend feColorMatrix feComponentTransfer feComposite
    feFlood feFuncA feFuncB feFuncG feFuncR feGaussianBlur feMerge feMergeNode feOffset style title desc"""
)
_SKIPPED = frozenset({"metadata"})
"""Left out with all in it: says who made the picture, and is never drawn."""
_TEXT_ONLY = frozenset({"style", "title", "desc"})
_WITH_TEXT = frozenset({"text", "tspan", "textPath", *_TEXT_ONLY})

_PRESENTATION = _words(
    """alignment-baseline baseline-shift clip-path clip-rule color color-interpolation color-interpolation-filters
    direction display dominant-baseline fill fill-opacity fill-rule filter flood-color flood-opacity font font-family
    font-size font-stretch font-style font-variant font-weight image-rendering isolation letter-spacing marker
    marker-end marker-mid marker-start mask mask-type mix-blend-mode opacity overflow paint-order pointer-events
    shape-rendering stop-color stop-opacity stroke stroke-dasharray stroke-dashoffset stroke-linecap stroke-linejoin
    stroke-miterlimit stroke-opacity stroke-width text-align text-anchor text-decoration text-rendering transform
    vector-effect visibility white-space word-spacing writing-mode"""
)
"""Properties of the drawing, as attributes and in CSS; `position`, `content` and the like are not among them."""
_ATTRIBUTES = _PRESENTATION | _words(
    """id class style version width height viewBox preserveAspectRatio type x y x1 y1 x2 y2 cx cy r rx ry fx fy dx dy d
    points pathLength rotate textLength lengthAdjust startOffset offset gradientUnits gradientTransform spreadMethod
    clipPathUnits maskUnits maskContentUnits patternUnits patternContentUnits patternTransform markerUnits
    markerWidth markerHeight refX refY orient filterUnits primitiveUnits in in2 result mode operator k1 k2 k3 k4
    values stdDeviation tableValues slope intercept amplitude exponent role aria-label aria-hidden"""
)

_OWN = re.compile(r"#[\w.:-]+")
_PICTURE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=\s]*")
_FUNCTIONS = _words(
    """url rgb rgba hsl hsla matrix matrix3d translate translatex translatey rotate scale scalex scaley skewx skewy calc
    blur brightness contrast drop-shadow grayscale hue-rotate invert opacity saturate sepia circle ellipse inset
    polygon"""
)
"""Of CSS, in small letters; others, such as `image-set` and `src`, may load something without `url`."""
_FUNCTION = re.compile(r"(?<![\w-])[\w-]*$")
_LONGEST_FUNCTION = 40
_DEEPEST = 200


class UnsafeSvgError(TwAutogenError, ValueError):
    """The picture holds something that may run, load or send, or is no SVG; the message says what."""


def safe_svg(text: str | bytes) -> str:
    """Return a picture that can stand in a web page: its shapes and texts, written anew from what was parsed.

    Comments, processing instructions, the document type, metadata, and attributes that don't belong to the drawing are
    left out. The rules of its style sheets hold inside the picture only: each selector stands for what lies below its
    outermost element, by a class that is made of the picture's content. The time it takes is linear.

    Args:
        text: An SVG document, as matplotlib, Graphviz or Plotly write it; bytes are in the encoding that it declares.

    Raises:
        UnsafeSvgError: there is a script, an event handler, a foreign object, an animation, a reference to anything
            outside of the picture, an entity of its own, or an element that is not known; or it is no XML.

    Example:
        >>> safe_svg('<svg xmlns="http://www.w3.org/2000/svg"><!-- --><path d="M0 0" data-x="1"/></svg>')
        '<svg xmlns="http://www.w3.org/2000/svg"><path d="M0 0"/></svg>'
    """
    content = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
    writer = _Writer("tw-" + hashlib.sha256(content).hexdigest()[:16])
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartDoctypeDeclHandler = writer.doctype
    parser.StartElementHandler = writer.start
    parser.EndElementHandler = writer.end
    parser.CharacterDataHandler = writer.text
    parser.buffer_text = True
    try:
        parser.Parse(content, True)
    except (expat.ExpatError, ValueError, LookupError) as error:
        if isinstance(error, UnsafeSvgError):
            raise
        raise UnsafeSvgError(f"it is no XML ({error})") from error
    return writer.finish()


class _Writer:
    """Writes what is allowed; raises at what is not.

    Args:
        scope: The class of the outermost element, if it has a style sheet.
    """

    def __init__(self, scope: str) -> None:
        self._scope = scope
        self.parts: list[str] = []
        self._open: list[str] = []
        self._is_empty = False
        self._skipped = 0
        self._css: list[str] = []
        self._is_styled = False
        self._root: list[tuple[str, str]] = []

    def finish(self) -> str:
        """Return the picture."""
        if self._is_styled:
            written = _attributes_text(
                [*((key, value) for key, value in self._root if key != "class"), ("class", self._scope)]
            )
            self.parts[0] = f"<svg{_DECLARED}{written}"
        return "".join(self.parts)

    def doctype(self, name: str, system: str | None, public: str | None, internal: int) -> None:
        if internal:
            raise UnsafeSvgError("it declares entities of its own")

    def start(self, name: str, attributes: dict[str, str]) -> None:
        space, _, local = name.rpartition(" ")
        if self._skipped or (space == _SVG and local in _SKIPPED):
            self._skipped += 1
            return
        if space != _SVG or local not in _ELEMENTS:
            raise UnsafeSvgError(f"it holds the element <{local[:40]}>")
        if (not self._open) != (local == "svg" and not self.parts):
            raise UnsafeSvgError(f"its outermost element is <{local}>")
        if self._open and self._open[-1] in _TEXT_ONLY:
            raise UnsafeSvgError(f"<{self._open[-1]}> holds an element")
        if len(self._open) >= _DEEPEST:
            raise UnsafeSvgError(f"its elements are nested more than {_DEEPEST} deep")
        kept = _safe_attributes(local, attributes)
        self._close_tag()
        if not self._open:
            self._root = kept
        self.parts.append(f"<{local}{_DECLARED if not self._open else ''}{_attributes_text(kept)}")
        self._open.append(local)
        self._is_empty, self._css = True, []

    def end(self, name: str) -> None:
        if self._skipped:
            self._skipped -= 1
            return
        local = self._open.pop()
        if local == "style":
            self._close_tag()
            self.parts.append(saxutils.escape(_checked_css("".join(self._css), self._scope)))
            self._is_styled = True
        if self._is_empty:
            self.parts.append("/>")
            self._is_empty = False
        else:
            self.parts.append(f"</{local}>")

    def text(self, text: str) -> None:
        if self._skipped or not self._open:
            return
        if self._open[-1] == "style":
            self._css.append(text)
        elif self._open[-1] in _WITH_TEXT:
            self._close_tag()
            self.parts.append(saxutils.escape(text))

    def _close_tag(self) -> None:
        if self._is_empty:
            self.parts.append(">")
            self._is_empty = False


_DECLARED = f' xmlns="{_SVG}"'


def _attributes_text(attributes: list[tuple[str, str]]) -> str:
    return "".join(f" {key}={saxutils.quoteattr(value)}" for key, value in attributes)


def _safe_attributes(element: str, attributes: dict[str, str]) -> list[tuple[str, str]]:
    """Return the attributes that are written, and raise at those that could do something."""
    kept = []
    for name, value in attributes.items():
        space, _, local = name.rpartition(" ")
        if local.lower().startswith("on"):
            raise UnsafeSvgError(f"it holds the event handler {local[:40]}")
        if local.lower() in ("href", "src") and space in ("", _XLINK, _SVG):
            if not (_OWN.fullmatch(value) or (element == "image" and _PICTURE.fullmatch(value))):
                raise UnsafeSvgError(f"<{element}> refers to something outside of it: {value[:60]}")
            kept.append(("href", value))
        elif space == _XML and local == "space":
            kept.append(("xml:space", value))
        elif not space and local in _ATTRIBUTES:
            _check_value(value)
            kept.append((local, _checked_declarations(value) if local == "style" else value))
    return kept


def _check_value(value: str) -> None:
    """Refuse references to anything outside of the picture, however they are spelled."""
    targets = [part.partition(")") for part in value.lower().split("url(")[1:]]
    own = all(end and _OWN.fullmatch(target.strip().strip("\"'")) for target, end, _ in targets)
    if not own or "\\" in value:
        raise UnsafeSvgError(f"a property refers to something outside of it: {value[:60]}")
    for before in value.lower().split("(")[:-1]:
        name = _FUNCTION.findall(before[-_LONGEST_FUNCTION:])[0]
        if name and name not in _FUNCTIONS:
            raise UnsafeSvgError(f"a property calls the function {name!r}")


def _checked_declarations(text: str) -> str:
    """Return those declarations of CSS that belong to the drawing."""
    _check_value(text)
    found = (part.partition(":") for part in text.split(";"))
    return "; ".join(
        f"{name.strip().lower()}: {value.strip()}" for name, _, value in found if name.strip().lower() in _PRESENTATION
    )


_SELECTOR = re.compile(r"[\w*.#][\w*.#-]*(?:(?:\s*[>+~]\s*|\s+)[\w*.#][\w*.#-]*)*")
"""Of plain names, classes and identifiers; others, such as `:root` and `:has()`, may look out of the picture."""
_MAX_SELECTOR_CHARS = 1000


def _scope_selectors(selectors: str, scope: str) -> str:
    """Return selectors for what lies in the picture only; those that are not plain are left out.

    Example:
        >>> _scope_selectors("*, g > path.a, html:hover", "tw-1")
        '.tw-1 *, .tw-1 g > path.a'
    """
    found = (part.strip() for part in selectors.split(","))
    kept = (one for one in found if len(one) <= _MAX_SELECTOR_CHARS and _SELECTOR.fullmatch(one))
    return ", ".join(f".{scope} {one}" for one in kept)


def _checked_css(text: str, scope: str) -> str:
    """Return the rules of a style sheet for the picture, each with its declarations that belong to the drawing."""
    head, *commented = text.split("/*")
    *rules, rest = (head + "".join(one.partition("*/")[2] for one in commented)).split("}")
    if "@" in text or rest.strip() or not all(rule.count("{") == 1 for rule in rules):
        raise UnsafeSvgError("its style sheet is more than plain rules")
    parts = (rule.partition("{") for rule in rules)
    kept = ((_scope_selectors(selectors, scope), _checked_declarations(inner)) for selectors, _, inner in parts)
    return "".join(f"{selectors}{{{inner}}}" for selectors, inner in kept if selectors)
