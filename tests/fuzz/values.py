"""What goes wrong in texts, bytes and JSON: strategies that all kinds draw from."""

import copy
import json

from hypothesis import strategies as st

TEXTS = (
    *("", " ", "\t", "\n", "\r\n", "\0", "\x1b[2J", "\x0c", "\x85", "\u2028", "\u202e", "\ufeff"),
    *(
        "\ud800",
        "é",
        "e\u0301",
        "½",
        "日本",
        "🙂",
        '"',
        "'",
        "\\",
        "\\t",
        ",",
        ";",
        "|",
        "{}",
        "%s",
    ),
    *("../x", "/", "a/b", ".", "..", "-", "0", "00", "-1", "1.0", "1e39", "nan", "inf", "٣", "²"),
    *("9" * 400, "9" * 5000, "x" * 3000, "true", "null", "s3://a/b", "[CLS]", "#", "the cat"),
)
NUMBERS = (
    *(0, 1, -1, 2, 7, 16, 255, 2**31, 2**53 + 1, 10**12, 2**63, 2**64, 10**290, 10**400),
    *(0.0, -0.0, 0.5, -1.5, 1e-320, 1e39, 1e308, float("nan"), float("inf"), float("-inf")),
)
CHUNKS = (
    *(b"", b"\0", b"\xff", b"\xfe\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\r", b"\n", b"\r\n"),
    *(
        b'"',
        b'""',
        b",",
        b"\t",
        b"[" * 3000,
        b"{",
        b"}",
        b"9" * 5000,
        b"NaN",
        b"\\ud800",
        b"\x1b[2J",
    ),
)


def texts(most=12):
    """Texts, most of them such that something goes wrong with them."""
    return st.sampled_from(TEXTS) | st.text(max_size=most)


def scalars():
    """What a JSON file may say where a value is expected."""
    return st.none() | st.booleans() | st.sampled_from(NUMBERS) | st.integers() | texts()


def json_values():
    """Any JSON."""
    return st.recursive(
        scalars(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts(), inner, max_size=4),
        max_leaves=6,
    )


@st.composite
def changed(draw, value, most=3):
    """A JSON value with a few parts replaced, removed or added.

    Args:
      value: a sound one.
      most: changes.
    """
    value = copy.deepcopy(value)
    for _ in range(draw(st.integers(0, most))):
        value = _change(draw, value)
    return value


def _change(draw, value):
    if not isinstance(value, dict | list) or draw(st.integers(0, 15)) == 0:
        return draw(json_values())
    keys = sorted(value) if isinstance(value, dict) else range(len(value))
    how = draw(st.sampled_from(("inside",) * 6 + ("replace", "replace", "remove", "add")))
    if how == "add" or not keys:
        return _added(draw, value)
    key = draw(st.sampled_from(keys))
    if how == "remove":
        del value[key]
    else:
        value[key] = draw(json_values()) if how == "replace" else _change(draw, value[key])
    return value


def _added(draw, value):
    if isinstance(value, dict):
        return value | {draw(texts()): draw(json_values())}
    twice = value and draw(st.booleans())
    return [*value, draw(st.sampled_from(value)) if twice else draw(json_values())]


@st.composite
def json_bytes(draw, values):
    """The file of a JSON value, now and then in an odd encoding or damaged."""
    text = json.dumps(draw(values), ensure_ascii=draw(st.booleans()))
    content = text.encode("utf-8", "surrogatepass")
    return draw(st.just(content) | _odd(content))


@st.composite
def _odd(draw, content):
    if draw(st.booleans()):
        return draw(edited(content))
    text = content.decode("utf-8", "surrogatepass")
    name = draw(st.sampled_from(("utf-8-sig", "utf-16", "utf-32", "latin-1")))
    return text.encode(name, "replace")


@st.composite
def edited(draw, content, most=3):
    """Bytes with a few pieces cut out, put in or replaced."""
    for _ in range(draw(st.integers(1, most))):
        begin = draw(st.integers(0, len(content)))
        end = draw(st.sampled_from((begin, begin + 1, begin + 8, len(content))))
        piece = draw(st.sampled_from(CHUNKS) | st.binary(max_size=8))
        content = content[:begin] + piece + content[end:]
    return content
