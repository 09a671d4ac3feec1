"""The start tags of an HTML page in UTF-8, in time linear in its length whatever the page holds, and one at a time."""

import re
from collections.abc import Iterator
from html import unescape

# html.parser is not used: on the CPython patch releases that we support it takes time quadratic in the length of a
# malformed page (100 kB of "<a " took 87 s on 3.11.7). This scanner is linear: no expression can
# match a text in two ways, and what does not close ends the scan.
_TAG = re.compile(rb"<(?:(!--)|([a-z][a-z0-9]*)(?=[\s/>]))", re.IGNORECASE)
_ATTRIBUTE = re.compile(rb"""[\s/]*([^\s"'<>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'<>]+)))?""", re.DOTALL)
_TAG_END = re.compile(rb"[\s/]*>")
_SCRIPT_END = re.compile(rb"</script", re.IGNORECASE)
_MOST_ATTRIBUTES = 100
_REFERENCE = re.compile(r"&(?:#[0-9]{1,8}|#[xX][0-9a-fA-F]{1,8}|[a-zA-Z][a-zA-Z0-9]{1,32});")


def start_tags(page: bytes) -> Iterator[tuple[str, dict[str, str | None]]]:
    """The start tags outside of comments and scripts: name and attributes, names in lower case.

    The value of an attribute is None when it has none (``<a download>``). A tag that does not close is omitted, and so
    are its attributes beyond the first hundred.
    """
    position = 0
    while found := _TAG.search(page, position):
        position = found.end()
        if found[1]:
            position = page.find(b"-->", position)
            if position < 0:
                return
            continue
        attributes: dict[str, str | None] = {}
        while attribute := _ATTRIBUTE.match(page, position):
            position = attribute.end()
            if len(attributes) >= _MOST_ATTRIBUTES:
                continue
            raw = next((group for group in attribute.group(2, 3, 4) if group is not None), None)
            value = None if raw is None else raw.decode("utf-8", "replace")
            if value and "&" in value:
                value = _REFERENCE.sub(lambda reference: unescape(reference[0]), value)
            attributes.setdefault(
                attribute[1].decode("utf-8", "replace").lower(), value
            )  # the first of a repeated attribute counts
        if _TAG_END.match(page, position):
            name = found[2].decode().lower()
            yield name, attributes
            if name == "script":
                end = _SCRIPT_END.search(page, position)
                if end is None:
                    return
                position = end.end()
