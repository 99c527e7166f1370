"""Zoo A and D, what needs names: hosts with a name, and what a name server makes of it (8 to 12, 14, 72)."""

from __future__ import annotations

from xyro.lab.zoo import name_server as names
from xyro.lab.zoo.acts import Case, ZooClient, answers, page, response, says

_SOUND = says(response(page("/ok.html")))
_FARM_LINKS = 30
_ELSEWHERE = ("blocked-address", "only-net")


def _many_names(client: ZooClient) -> bytes:
    """Each page has links to 100 more of 50,000 names, all of one address."""
    first = client.nth * 100
    hosts = (f"http://n{number}.crowd.zoo.test:{client.port}/" for number in range(first, min(first + 100, 50_000)))
    return response(page(*hosts))


def _farm(client: ZooClient) -> bytes:
    """Each page has links to new hosts of one domain and address, and to the farm's first."""
    first = client.nth * _FARM_LINKS
    hosts = (f"http://f{number}.farm.zoo.test:{client.port}/" for number in range(first, first + _FARM_LINKS))
    return response(page(*hosts, f"http://f0.farm.zoo.test:{client.port}/"))


CASES = (
    Case(8, "names-of-one-address", ("",), answers(_many_names), host="crowd.zoo.test", endless=True),
    Case(9, "a-thousand-addresses", ("", "connect-refused"), _SOUND, host="many.zoo.test", names=names.crowded),
    Case(10, "name-missing", ("dns-nxdomain",), _SOUND, host="missing.zoo.test", names=names.missing),
    Case(10, "name-broken", ("dns-servfail",), _SOUND, host="broken.zoo.test", names=names.broken),
    Case(10, "name-silent", ("dns-timeout",), _SOUND, host="silent.zoo.test", names=names.silent),
    Case(11, "name-loop", ("dns-servfail", "dns-nxdomain"), _SOUND, host="loop.zoo.test", names=names.looping),
    Case(12, "name-inside", _ELSEWHERE, _SOUND, host="inside.zoo.test", names=names.inside),
    Case(12, "name-rebinds", ("", *_ELSEWHERE), _SOUND, host="rebinds.zoo.test", names=names.rebinding),
    Case(14, "ipv6-dead", ("",), _SOUND, host="dual.zoo.test", names=names.dead_ipv6),
    Case(
        14,
        "ipv6-only",
        (*_ELSEWHERE, "connect-failed", "connect-timeout"),
        _SOUND,
        host="six.zoo.test",
        names=names.only_ipv6,
    ),
    Case(72, "link-farm", ("",), answers(_farm), host="farm.zoo.test", endless=True),
)
