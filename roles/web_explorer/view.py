"""`View`: what a page shows, and the script that finds what can be used on it."""

from dataclasses import dataclass

MARK = "data-tw-number"
"""The attribute that numbers what can be used."""

LOOK = """
(mark) => {
  document.querySelectorAll(`[${mark}]`).forEach((one) => one.removeAttribute(mark));
  const wanted = 'a[href], button, input:not([type=hidden]), select, textarea, [role=button], [role=link], summary';
  const found = [];
  for (const one of document.querySelectorAll(wanted)) {
    const box = one.getBoundingClientRect();
    const style = getComputedStyle(one);
    if (!box.width || !box.height || style.visibility === 'hidden' || one.disabled) continue;
    one.setAttribute(mark, String(found.length + 1));
    const link = one.tagName === 'A', field = one.tagName === 'INPUT', choice = one.tagName === 'SELECT';
    const kind = link ? 'link' : field ? (one.type || 'text') : one.tagName.toLowerCase();
    const label = (one.labels && one.labels.length) ? one.labels[0].innerText : '';
    const own = choice ? '' : one.innerText;
    const words = own || one.getAttribute('aria-label') || label || one.placeholder || one.name || one.title || '';
    const options = choice ? [...one.options].map((o) => o.text).slice(0, 20).join(' | ') : '';
    const value = ['checkbox', 'radio'].includes(one.type) ? (one.checked ? 'checked' : '') :
      (field && one.type !== 'password') || one.tagName === 'TEXTAREA' ? one.value :
      choice ? (one.selectedOptions[0] || {text: ''}).text : '';
    found.push([kind, words.trim().replace(/\\s+/g, ' ').slice(0, 100), link ? one.href : '', value, options]);
    if (found.length >= 150) break;
  }
  return found;
}
"""
"""Numbers what can be used, and gives of each: kind, words, address, value, options."""


@dataclass(frozen=True)
class View:
    """What a page shows.

    Args:
        url: Its address.
        title: Its title.
        text: What can be read on it.
        things: What can be clicked or filled in, numbered from 1, a line each.
        trouble: What was not let through.
    """

    url: str
    title: str
    text: str
    things: tuple[str, ...]
    trouble: tuple[str, ...] = ()


def line_of(number: int, kind: str, text: str, url: str, value: str, options: str) -> str:
    """Give one thing that can be used as a line."""
    parts = [f"[{number}] {kind} {text!r}" if text else f"[{number}] {kind}"]
    parts += [f"= {value!r}"] if value else []
    parts += [f"-> {url}"] if url else []
    parts += [f"of: {options}"] if options else []
    return " ".join(parts)[:300]
