"""Addresses of traces: ours, and those that people copy from the browser."""

from __future__ import annotations

import pytest

from llmlat_processor.jaeger_address import is_address, parse

ID = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.mark.parametrize(
    ("text", "base"),
    [
        (f"jaeger://jaeger:16686/{ID}", "http://jaeger:16686"),
        (f"jaeger://jaeger/{ID}", "http://jaeger:16686"),
        (f"jaeger://jaeger:/{ID}", "http://jaeger:16686"),
        (f"jaeger://[::1]:80/base/{ID}/", "http://[::1]:80/base"),
        (f"jaeger://jaeger:16686/trace/{ID}", "http://jaeger:16686"),
        (f"JAEGER://jaeger:16686/{ID.upper()}", "http://jaeger:16686"),
        (f"http://localhost:16686/trace/{ID}", "http://localhost:16686"),
        (f"https://ops.example/jaeger/ui/trace/{ID}", "https://ops.example/jaeger/ui"),
        (f"https://ops.example/trace/{ID}?uiFind=queue&x=1#top", "https://ops.example"),
        (f"http://localhost:16686/api/traces/{ID}?prettyPrint=true", "http://localhost:16686"),
        (f"http://localhost:16686/b/api/v3/traces/{ID}", "http://localhost:16686/b"),
    ],
)
def test_a_trace_is_found_by_its_address(text: str, base: str) -> None:
    address = parse(text)

    assert is_address(text)
    assert address == (base, ID)
    assert address.urls == (
        f"{base}/api/v3/traces/{ID}?raw_traces=true",
        f"{base}/api/traces/{ID}?raw=true",
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"ftp://host/trace/{ID}", "not the address of a trace"),
        (f"jaeger:///{ID}", "not the address of a trace"),
        ("http://localhost:16686/search?service=a", "no trace id"),
        (f"http://localhost:16686/{ID}", "no trace id"),
        (f"jaeger://localhost:16686/{ID}0", "no trace id"),
        ("jaeger://localhost:16686/", "no trace id"),
        (f"jaeger://localhost:port/{ID}", "looks like jaeger://HOST:PORT/TRACEID"),
        (f"jaeger://localhost:99999/{ID}", "looks like jaeger://HOST:PORT/TRACEID"),
        (f"http://me:secret@host/trace/{ID}", "nobody is logged in"),
    ],
)
def test_what_is_no_address_is_told_with_what_one_looks_like(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told) as raised:
        parse(text)

    assert str(raised.value).startswith(text)


@pytest.mark.parametrize(
    "path", ["traces.jsonl", "-", "a:b/traces.pb", "./jaeger:", "C:/traces.json"]
)
def test_a_path_is_no_address(path: str) -> None:
    assert not is_address(path)
