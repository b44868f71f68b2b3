"""Values of parameters are encoded as in the style tables of the OpenAPI specification."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repertory.calling.http.credentials import Credentials, credentials_for
from repertory.calling.http.request import Request, request_of
from repertory.calling.http.styles import (
    MAX_DEPTH,
    MAX_LENGTH,
    in_cookie,
    in_header,
    in_path,
    in_query,
)
from repertory.errors import ArgumentsError, CallError
from repertory.sources.openapi.api import Api
from repertory.sources.openapi.operation import Body, Operation, Parameter, Part, Scheme

BASE = "https://api.example.com/v1"
COLOURS = ["blue", "black", "brown"]
RGB = {"R": 100, "G": 200, "B": 150}


def parameter(place: str, style: str, *, explode: bool = False, **more: bool) -> Parameter:
    """A parameter named ``color``."""
    return Parameter(
        argument="color",
        name="color",
        place=place,  # type: ignore[arg-type]  # one of its literals
        style=style,  # type: ignore[arg-type]  # one of its literals
        explode=explode,
        **more,
    )


@pytest.mark.parametrize(
    ("style", "explode", "value", "expected"),
    [
        ("simple", False, "blue", "blue"),
        ("simple", False, COLOURS, "blue,black,brown"),
        ("simple", True, COLOURS, "blue,black,brown"),
        ("simple", False, RGB, "R,100,G,200,B,150"),
        ("simple", True, RGB, "R=100,G=200,B=150"),
        ("label", False, "blue", ".blue"),
        ("label", False, COLOURS, ".blue,black,brown"),
        ("label", True, COLOURS, ".blue.black.brown"),
        ("label", False, RGB, ".R,100,G,200,B,150"),
        ("label", True, RGB, ".R=100.G=200.B=150"),
        ("matrix", False, "blue", ";color=blue"),
        ("matrix", False, "", ";color"),
        ("matrix", False, COLOURS, ";color=blue,black,brown"),
        ("matrix", True, COLOURS, ";color=blue;color=black;color=brown"),
        ("matrix", False, RGB, ";color=R,100,G,200,B,150"),
        ("matrix", True, RGB, ";R=100;G=200;B=150"),
        ("simple", False, "a/b?c#d é%", "a%2Fb%3Fc%23d%20%C3%A9%25"),
        ("simple", False, True, "true"),
        ("json", False, {"a": 1}, "%7B%22a%22%3A1%7D"),
        ("json", False, "..", "%22..%22"),
    ],
)
def test_values_in_a_path_follow_their_style(
    style: str, explode: bool, value: object, expected: str
) -> None:
    """Every path style is tested with plain values, lists and objects."""
    assert in_path(parameter("path", style, explode=explode), value) == expected


@pytest.mark.parametrize("value", ["", ".", "..", []])
def test_a_value_cannot_change_the_path(value: object) -> None:
    """A server would read these values as another path."""
    with pytest.raises(ArgumentsError, match="color"):
        in_path(parameter("path", "simple"), value)


@pytest.mark.parametrize(
    ("style", "explode", "value", "expected"),
    [
        ("form", True, "blue", "color=blue"),
        ("form", True, "", "color="),
        ("form", True, COLOURS, "color=blue&color=black&color=brown"),
        ("form", False, COLOURS, "color=blue,black,brown"),
        ("form", True, RGB, "R=100&G=200&B=150"),
        ("form", False, RGB, "color=R,100,G,200,B,150"),
        ("spaceDelimited", False, COLOURS, "color=blue%20black%20brown"),
        ("spaceDelimited", False, RGB, "color=R%20100%20G%20200%20B%20150"),
        ("pipeDelimited", False, COLOURS, "color=blue%7Cblack%7Cbrown"),
        ("pipeDelimited", False, RGB, "color=R%7C100%7CG%7C200%7CB%7C150"),
        ("deepObject", True, RGB, "color[R]=100&color[G]=200&color[B]=150"),
        ("deepObject", True, {"a": {"b": [1, "x y"]}}, "color[a][b][0]=1&color[a][b][1]=x%20y"),
        ("json", False, RGB, "color=%7B%22R%22%3A100%2C%22G%22%3A200%2C%22B%22%3A150%7D"),
        ("form", True, "a&b=c+d", "color=a%26b%3Dc%2Bd"),
    ],
)
def test_values_in_a_query_follow_their_style(
    style: str, explode: bool, value: object, expected: str
) -> None:
    """Every query style is tested with plain values, lists and objects."""
    pairs = in_query(parameter("query", style, explode=explode), value)
    assert "&".join(f"{key}={one}" for key, one in pairs) == expected


def test_reserved_characters_can_stay_in_a_query() -> None:
    """Characters that would end the value are still encoded."""
    [(_, found)] = in_query(parameter("query", "form", reserved=True), "a/b?c:d,e&f=g#h")
    assert found == "a/b?c:d,e%26f%3Dg%23h"


def test_values_in_headers_and_cookies_follow_their_style() -> None:
    """Headers are not encoded and cannot contain line breaks; cookies are encoded."""
    assert in_header(parameter("header", "simple"), COLOURS) == "blue,black,brown"
    assert in_header(parameter("header", "simple", explode=True), RGB) == "R=100,G=200,B=150"
    assert in_cookie(parameter("cookie", "form", explode=True), "a;b") == [("color", "a%3Bb")]
    for wrong in ("a\r\nX-Other: b", "a\x7f"):
        with pytest.raises(ArgumentsError, match="line breaks"):
            in_header(parameter("header", "simple"), wrong)


def test_parameters_are_bounded() -> None:
    """The length and the depth of a parameter are limited, and so is the length of the URL."""
    for place, encode in (("query", in_query), ("cookie", in_cookie)):
        long = "x" * (MAX_LENGTH - len("color"))
        assert encode(parameter(place, "form"), long)
        with pytest.raises(ArgumentsError, match="characters"):
            encode(parameter(place, "form"), f"{long}x")
    deep: Any = "x"
    for _ in range(MAX_DEPTH):
        deep = {"a": deep}
    assert in_query(parameter("query", "deepObject", explode=True), deep)
    with pytest.raises(ArgumentsError, match="levels"):
        in_query(parameter("query", "deepObject", explode=True), {"a": deep})
    three = tuple(
        Parameter(argument=name, name=name, place="query", style="form") for name in "abc"
    )
    operation = Operation(method="GET", url=BASE, parameters=three)
    with pytest.raises(ArgumentsError, match="URL that is too long"):
        request_of(operation, dict.fromkeys("abc", "x" * 70_000), Credentials())


def request(described: Body | None, **arguments: object) -> Request:
    """The request of an operation with a body."""
    operation = Operation(method="POST", url=f"{BASE}/things", body=described)
    return request_of(operation, arguments, Credentials())


def test_a_form_body_is_encoded() -> None:
    """By default, lists are repeated and objects are JSON; an encoding may change this."""
    body = Body(
        type="application/x-www-form-urlencoded",
        fields=("a", "b", "c", "d"),
        parts={"c": Part(style="deepObject"), "d": Part(style="form", explode=False)},
    )
    found = request(body, a="x y&z", b={"k": 1}, c={"k": {"l": 2}}, d=[1, 2])
    assert found.content == b"a=x%20y%26z&b=%7B%22k%22%3A1%7D&c[k][l]=2&d=1,2"
    assert found.headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert request(body).content is None


def test_a_json_body_is_encoded() -> None:
    """It consists of fields or one argument. Without arguments, only a required body is sent."""
    fields = Body(type="application/json", fields=("a", "b"), is_required=True)
    assert request(fields, a=None, b="é", other=1).content == '{"a": null, "b": "é"}'.encode()
    assert request(fields).content == b"{}"
    assert request(Body(type="application/json", fields=("a",))).content is None
    whole = Body(type="application/vnd.api+json", argument="body")
    assert request(whole, body=[1]).content == b"[1]"
    assert request(whole).content is None
    assert request(None, a=1).content is None


def test_a_file_body_is_encoded() -> None:
    """The argument is the text of the file or a ``data:`` URL with its content."""
    body = Body(type="application/octet-stream", argument="body")
    assert request(body, body="data:image/png;base64,AAEC").content == b"\0\1\2"
    assert request(body, body="plain").content == b"plain"
    for wrong in ("data:;base64,???", "data:text/plain\r\nX: y;base64,AAEC", "data:text/plain"):
        with pytest.raises(ArgumentsError, match="Base64"):
            request(body, body=wrong)


def test_a_multipart_form_is_encoded() -> None:
    """A list is repeated. The document's media type of a file precedes that of its URL."""
    files = {name: Part(is_file=True) for name in "bc"}
    jpeg = Part(is_file=True, type="image/jpeg")
    body = Body(type="multipart/form-data", fields=(*"abcd",), parts={**files, "d": jpeg})
    png = "data:image/png;base64,QUJD"
    found = request(body, a=["x", {"k": 1}], b=png, c="plain", d=png)
    boundary = found.headers["Content-Type"].partition("; boundary=")[2]
    assert (found.content or b"").decode().split(f"--{boundary}") == [
        "",
        '\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\n',
        '\r\nContent-Disposition: form-data; name="a"'
        '\r\nContent-Type: application/json\r\n\r\n{"k":1}\r\n',
        '\r\nContent-Disposition: form-data; name="b"; filename="b"'
        "\r\nContent-Type: image/png\r\n\r\nABC\r\n",
        '\r\nContent-Disposition: form-data; name="c"; filename="c"'
        "\r\nContent-Type: application/octet-stream\r\n\r\nplain\r\n",
        '\r\nContent-Disposition: form-data; name="d"; filename="d"'
        "\r\nContent-Type: image/jpeg\r\n\r\nABC\r\n",
        "--\r\n",
    ]


def test_names_in_a_multipart_form_are_written_as_in_browsers() -> None:
    """A percent-encoded name would be another name, and a line break another header."""
    body = Body(type="multipart/form-data", fields=("état", "заметка 100%", 'a"\r\nX: b'))
    operation = Operation(method="POST", url=BASE, body=body)
    content = request_of(operation, dict.fromkeys(body.fields, "x"), Credentials()).content
    assert content is not None
    lines = content.decode().split("\r\n")
    assert [line.partition("; ")[2] for line in lines if line.startswith("Content-")] == [
        'name="état"',
        'name="заметка 100%"',
        'name="a%22%0D%0AX: b"',
    ]


def _credentials(
    *schemes: tuple[Scheme, ...],
    auth: dict[str, str],
    headers: dict[str, str] | None = None,
    **variables: str,
) -> Credentials:
    """The credentials of an operation with these alternatives."""
    api = Api(name="shop", origin=BASE, auth=auth, headers=headers or {})
    return credentials_for(api, Operation(method="GET", url=BASE, security=schemes), variables)


def test_secrets_are_masked_wherever_a_response_repeats_them() -> None:
    """They may be quoted as JSON or in a URL, or be the beginning of another secret."""
    auth = {"a": "${ONE}", "b": "${TWO}", "c": "${THREE}"}
    found = _credentials((), auth=auth, ONE='o"ne/one one', TWO='o"ne/one one, two', THREE="x")
    for text in ('o"ne/one one', r"o\"ne/one one", "o%22ne%2Fone%20one", "o%22ne%2Fone+one"):
        assert found.redact(f"<{text}>") == "<***>"
    assert found.redact('o"ne/one one, two') == "***"
    assert found.redact_all({'o"ne/one one': ["x", 1]}) == {"***": ["x", 1]}  # THREE is too short


def test_the_user_s_name_is_not_masked() -> None:
    """The password is, also together with the name."""
    scheme = Scheme(name="a", place="basic")
    auth = {"a": "${NAME}:${WORD}"}
    found = _credentials((scheme,), auth=auth, NAME="alice-smith", WORD="swordfish")
    assert found.headers == {"Authorization": "Basic YWxpY2Utc21pdGg6c3dvcmRmaXNo"}
    text = "alice-smith has swordfish, YWxpY2Utc21pdGg6c3dvcmRmaXNo"
    assert found.redact(text) == "alice-smith has ***, ***"


def test_a_secret_replaces_a_configured_header() -> None:
    """Names of headers are compared without case, and no request has two of a name."""
    scheme, auth = Scheme(name="a", place="bearer"), {"a": "${ONE}"}
    headers = {"authorization": "Basic x", "X-Team": "shop"}
    found = _credentials((scheme,), auth=auth, headers=headers, ONE="one-secret")
    assert found.headers == {"Authorization": "Bearer one-secret", "X-Team": "shop"}


def test_the_first_missing_variable_is_named() -> None:
    """Any alternative would do, and the document has the preferred one first."""
    schemes = [Scheme(name=name, place="bearer") for name in "ab"]
    auth = {"a": "${ONE}", "b": "${TWO}"}
    with pytest.raises(CallError, match="ONE"):
        _credentials(*((one,) for one in schemes), auth=auth)
    found = _credentials(*((one,) for one in schemes), auth=auth, TWO="two-secret")
    assert found.headers == {"Authorization": "Bearer two-secret"}


def test_credentials_take_precedence_over_an_argument() -> None:
    """An argument cannot replace the configured credentials."""
    operation = Operation(
        method="GET",
        url=f"{BASE}/things",
        parameters=(Parameter(argument="k", name="x-key", place="header", style="simple"),),
    )
    found = request_of(operation, {"k": "mine"}, Credentials(headers={"X-Key": "theirs"}))
    assert found.headers["X-Key"] == "theirs"
    assert "mine" not in found.headers.values()


@given(st.text(min_size=1, max_size=50))
def test_no_argument_changes_the_server_or_the_path(text: str) -> None:
    """Arguments may be any text."""
    operation = Operation(
        method="GET",
        url=f"{BASE}/things/{{id}}/parts",
        parameters=(
            Parameter(argument="id", name="id", place="path", style="simple"),
            Parameter(argument="q", name="q", place="query", style="form"),
        ),
    )
    if text.strip(".") == "":
        return
    try:
        url = request_of(operation, {"id": text, "q": text}, Credentials()).url
    except UnicodeEncodeError:
        return  # a lone surrogate, which valid JSON cannot contain
    path, _, query = url.removeprefix(BASE).partition("?")
    assert url.startswith(f"{BASE}/things/")
    assert path.count("/") == 3
    assert path.endswith("/parts")
    assert query.count("&") == 0
    assert "#" not in url
