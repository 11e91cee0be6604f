"""SVG pictures of code: their shapes get into a notebook, and nothing that runs, loads or sends."""

import contextlib
import io
import re
from xml.etree import ElementTree

import pytest

from tw_autogen.svg_sanitizer import UnsafeSvgError, safe_svg


def svg(inner="", attributes=""):
    return (
        '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'xmlns:h="http://www.w3.org/1999/xhtml" {attributes}>{inner}</svg>'
    )


ACTIVE = {
    "a script": (svg("<script>alert(1)</script>"), "<script>"),
    "a script of HTML": (svg("<h:script>alert(1)</h:script>"), "<script>"),
    "a script in a group": (svg("<g><g><script href='#a'/></g></g>"), "<script>"),
    "a handler of the picture": (svg(attributes='onload="alert(1)"'), "event handler onload"),
    "a handler in capitals": (svg('<rect ONCLICK="alert(1)"/>'), "event handler ONCLICK"),
    "a handler with a prefix": (svg('<rect xlink:onclick="alert(1)"/>'), "event handler onclick"),
    "a foreign object": (svg("<foreignObject><h:body/></foreignObject>"), "<foreignObject>"),
    "a frame": (svg("<h:iframe src='https://x.test'/>"), "<iframe>"),
    "a link": (svg('<a xlink:href="javascript:alert(1)"><text>x</text></a>'), "<a>"),
    "an animation": (svg('<set attributeName="href" to="javascript:alert(1)"/>'), "<set>"),
    "an animated attribute": (svg('<animate attributeName="href" values="x"/>'), "<animate>"),
    "a picture elsewhere": (svg('<image href="https://x.test/p.png"/>'), "outside of it: https"),
    "a picture that is an SVG": (svg('<image href="data:image/svg+xml;base64,AA"/>'), "outside of it: data"),
    "a shape elsewhere": (svg('<use xlink:href="other.svg#a"/>'), "outside of it: other"),
    "a shape that is data": (svg('<use href="data:image/png;base64,AA"/>'), "outside of it: data"),
    "a fill elsewhere": (svg('<rect fill="url(https://x.test)"/>'), "outside of it: url"),
    "a fill elsewhere in a style": (svg("<rect style=\"fill: URL( '//x.test' )\"/>"), "outside of it: fill"),
    "a fill spelled with escapes": (svg(r'<rect style="fill: u\72l(//x.test)"/>'), "outside of it: fill"),
    "an address that doesn't end": (svg('<rect style="fill: url(//x.test"/>'), "outside of it: fill"),
    "an import": (svg("<style>@import 'https://x.test';</style>"), "style sheet"),
    "a font elsewhere": (svg("<style>@font-face{src:url(https://x.test)}</style>"), "style sheet"),
    "a style sheet that closes itself": (svg("<style>&lt;/style>&lt;script></style>"), "style sheet"),
    "a rule that loads": (svg("<style>*{fill:url(https://x.test)}</style>"), "outside of it"),
    "a set of pictures elsewhere": (svg('<rect mask="image-set(&quot;//x.test&quot; 1x)"/>'), "function 'image-set'"),
    "a set of pictures in a style": (svg("<rect style=\"mask: IMAGE-SET('//x.test' 1x)\"/>"), "function 'image-set'"),
    "a set of pictures in a rule": (svg("<style>*{mask:-webkit-image-set('//x.test')}</style>"), "function '-webkit"),
    "a source elsewhere": (svg("<rect fill=\"src('//x.test')\"/>"), "function 'src'"),
    "a function with a long name": (svg(f'<rect fill="{"x" * 100_000}(1)"/>'), "function 'xxx"),
    "a style sheet elsewhere": (svg('<h:link rel="stylesheet" href="https://x.test"/>'), "<link>"),
    "a script in a title": (svg("<title><h:img src='x' onerror='alert(1)'/></title>"), "<img>"),
    "an entity": ('<!DOCTYPE svg [<!ENTITY x "y">]>' + svg("<text>&x;</text>")[21:], "entities of its own"),
    "an external entity": ('<!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]>' + svg("&x;")[21:], "entities"),
    "a page": ("<html xmlns='http://www.w3.org/1999/xhtml'><script/></html>", "<html>"),
    "a shape alone": ("<rect xmlns='http://www.w3.org/2000/svg'/>", "outermost"),
    "an SVG without its namespace": ("<svg onload='alert(1)'/>", "<svg>"),
    "no XML": ("<svg", "no XML"),
    "nothing": ("", "no XML"),
    "another encoding": ('<?xml version="1.0" encoding="x-none"?><svg/>', "no XML"),
    "too deep": (svg("<g>" * 5000 + "</g>" * 5000), "nested"),
}


@pytest.mark.parametrize(("text", "words"), ACTIVE.values(), ids=ACTIVE)
def test_a_picture_that_could_do_something_is_refused_with_what_it_holds(text, words):
    with pytest.raises(UnsafeSvgError, match=words):
        safe_svg(text)


PASSIVE = {
    "a comment that ends early in HTML": svg("<!--><img src=x onerror=alert(1)>--><rect/>"),
    "an instruction that ends early in HTML": svg("<?x ><img src=x onerror=alert(1)> ?><rect/>"),
    "unescaped text": svg("<text><![CDATA[</text><script>alert(1)</script>]]></text>"),
    "an attribute with markup": svg('<rect id="&quot;&gt;&lt;script>"/>'),
    "metadata": svg("<metadata><script>alert(1)</script></metadata><rect/>"),
    "data of its own": svg('<rect data-x="1" formaction="javascript:alert(1)" h:style="x"/>'),
    "properties of a page": svg('<rect style="position: fixed; fill: red"/><style>* {position: fixed}</style>'),
    "text between shapes": svg("alert(1)<rect/>"),
}


@pytest.mark.parametrize("text", PASSIVE.values(), ids=PASSIVE)
def test_what_could_only_be_misread_is_left_out_or_escaped(text):
    made = safe_svg(text)

    assert not any(
        one in made for one in ("<script", "<img", "<!", "<?", "alert(1)<rect", "position", "data-x", "form")
    )
    ElementTree.fromstring(made)


REACHING = {
    "all": ("*{display: none}", "{0} *{{display: none}}"),
    "the page": ("html, body > div.jp-Cell{display: none}", "{0} html, {0} body &gt; div.jp-Cell{{display: none}}"),
    "what follows the picture": ("+ div, ~ div, > g{display: none}", ""),
    "its root": (":root, :is(body, g), body:has(svg){display: none}", ""),
    "an attribute": ("[class]{fill: red}", ""),
    "plain ones": ("g.a > path, #b{fill: red}", "{0} g.a &gt; path, {0} #b{{fill: red}}"),
}


@pytest.mark.parametrize(("css", "kept"), REACHING.values(), ids=REACHING)
def test_a_style_sheet_holds_inside_the_picture_only(css, kept):
    made = safe_svg(svg(f"<style>{css.replace('>', '&gt;')}</style><g/>", 'class="jp-Cell" width="3"'))

    (scope,) = re.findall(r'<svg xmlns="[^"]+" width="3" class="(tw-[0-9a-f]{16})">', made)
    assert re.findall("<style>(.*)</style>", made) == [kept.format(f".{scope}")]


def test_a_shape_keeps_its_own_references_and_style():
    inner = '<defs><clipPath id="c"><rect/></clipPath></defs><g clip-path="url(#c)" style="fill: #fff; opacity: 0.5"/>'

    assert safe_svg(svg(f'{inner}<use xlink:href="#c"/><text xml:space="preserve"> a &lt; b </text>')) == (
        f'<svg xmlns="http://www.w3.org/2000/svg">{inner}<use href="#c"/>'
        '<text xml:space="preserve"> a &lt; b </text></svg>'
    )


@pytest.mark.parametrize("name", ["font-family", "stroke-linejoin", "pointer-events", "stroke-linecap", "font-size"])
def test_a_property_is_kept_as_an_attribute_in_a_style_and_in_a_rule(name):
    made = safe_svg(svg(f'<style>text{{{name}: a}}</style><text {name}="a" style="{name}: a">x</text>'))

    assert f'<text {name}="a" style="{name}: a">x</text>' in made
    assert f"text{{{name}: a}}" in made


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1", "windows-1252"])
def test_a_picture_is_read_in_the_encoding_that_it_declares(encoding):
    text = f'<?xml version="1.0" encoding="{encoding}"?>{svg("<text>größer</text>")[21:]}'

    assert "<text>größer</text>" in safe_svg(text.encode(encoding))


@pytest.mark.parametrize("fonttype", ["path", "none"])
def test_a_chart_of_matplotlib_stays_what_it_is(fonttype):
    pytest.importorskip("matplotlib", reason="needs the extra `data`")
    import matplotlib
    from matplotlib.figure import Figure

    figure = Figure()
    left, right = figure.subplots(1, 2)
    left.plot([1, 3, 2], label="a < b")
    left.legend()
    right.imshow([[1, 2], [3, 4]])
    right.set_title("$x^2$ é")
    file = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": fonttype}):
        figure.savefig(file, format="svg")

    made = safe_svg(file.getvalue())

    shapes = [
        one.tag
        for one in ElementTree.fromstring(file.getvalue()).iter()
        if one.tag.startswith("{http://www.w3.org/2000/svg}")
    ]
    kept = [shape for shape in shapes if not shape.endswith("}metadata")]
    assert [one.tag for one in ElementTree.fromstring(made).iter()] == kept
    assert "data:image/png;base64," in made
    assert "clip-path=" in made


LONG = {
    "shapes": lambda count: svg("<path d='M0 0' style='fill: none; stroke: url(#a)'/>" * count),
    "rules": lambda count: svg(f"<style>{'*{fill: red}' * count}</style>"),
    "addresses that don't end": lambda count: svg(f"<rect style='{'url(' * count * 10}'/>"),
    "an address of blanks": lambda count: svg(f"<rect style='fill: url({' ' * count * 40}'/>"),
    "comments that don't end": lambda count: svg(f"<style>{'/*' * count * 20}</style>"),
    "a selector without a rule": lambda count: svg(f"<style>{'a' * count * 40}</style>"),
    "rules that don't end": lambda count: svg(f"<style>{'{' * count * 40}</style>"),
    "declarations": lambda count: svg(f"<rect style='{'fill:red;' * count * 4}'/>"),
}


@pytest.mark.parametrize("long", LONG.values(), ids=LONG)
def test_a_large_picture_takes_linear_time(long, cpu_seconds):
    def seconds(text):
        started = cpu_seconds()
        with contextlib.suppress(UnsafeSvgError):
            safe_svg(text)
        return cpu_seconds() - started

    assert seconds(long(20_000)) < 40 * max(seconds(long(2_000)), 0.01)
