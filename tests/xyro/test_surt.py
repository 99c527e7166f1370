"""Keys of CDXJ indexes beside those of pywb 2.10, which makes them by the Internet Archive's library surt 0.3.1."""

import pytest

from xyro.surt import surt

KEYS = [
    ("http://example.org/", "org,example)/"),
    ("https://www.example.org/", "org,example)/"),
    ("http://www3.example.co.uk/A/b/", "uk,co,example)/a/b"),
    ("http://127.0.0.1:8080/a", "1,0,0,127:8080)/a"),
    ("http://[::1]:8080/a", "::1:8080)/a"),
    ("https://example.org:8443/x?", "org,example:8443)/x"),
    ("http://example.org./", "org,example)/"),
    ("http://example.org/%7Ea/%41%2Fb", "org,example)/~a/a/b"),
    ("http://example.org/a%252e%252e/b", "org,example)/a../b"),
    ("http://example.org/a%20b%23c%3Fd", "org,example)/a%20b%23c?d"),
    ("http://example.org/a//b///", "org,example)/a/b"),
    ("http://example.org/%C3%A9?q=%C3%89", "org,example)/%c3%a9?q=%c3%89"),
    ("http://example.org/?b=2&a=1&A=0&a", "org,example)/?a&a=0&a=1&b=2"),
    ("http://example.org/?jsessionid=a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2&x=1", "org,example)/?x=1"),
    ("http://example.org/?x=1&PHPSESSID=00000000000000000000000000000000", "org,example)/?&x=1"),
    ("http://example.org/?xsid=ffffffffffffffffffffffffffffffff", "org,example)/?x"),
    ("http://example.org/?cfid=3&cftoken=4&z", "org,example)/?z"),
    ("http://example.org/?ASPSESSIONIDabcdefgh=zzzzzzzzzzzzzzzzzzzzzzzz", "org,example)/"),
    ("http://example.org/(S(abcdefghijklmnopqrstuvwx))/p.aspx", "org,example)/p.aspx"),
    ("http://example.org/(abcdefghijklmnopqrstuvwx)/p.aspx?a", "org,example)/p.aspx?a"),
    ("http://www.www.example.org/", "org,example,www)/"),
    ("http://example.org/a;v=1,(x)[y]|z", "org,example)/a;v=1,(x)[y]|z"),
]


@pytest.mark.parametrize(("url", "key"), KEYS)
def test_a_key_is_what_replay_tools_look_up(url, key):
    assert surt(url) == key
