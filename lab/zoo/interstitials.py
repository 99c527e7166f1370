"""Zoo: interstitials, pages that stand in the way of pages. Heads and bodies are made up in the manner of each kind.

Each is answered at every URL of its host. `vendor`: how xyro/challenges.py names it; "" where only evidence can tell:
nothing about one answer says that it is no page.
"""

from __future__ import annotations

from dataclasses import dataclass

HTML = "text/html; charset=UTF-8"


@dataclass(frozen=True, slots=True)
class Interstitial:
    """One kind. In the body {path} stands for the path that was asked for, {token} for one that is never the same."""

    name: str
    vendor: str
    body: str
    status: str = "200 OK"
    headers: tuple[str, ...] = ()
    mime: str = HTML

    def answer(self, path: str, token: str) -> bytes:
        """The whole response, connection closed after it."""
        fill = {"{path}": path, "{token}": token}
        body, headers = self.body, "\r\n".join(("", *self.headers))
        for mark, text in fill.items():
            body, headers = body.replace(mark, text), headers.replace(mark, text)
        data = body.encode()
        head = f"HTTP/1.1 {self.status}\r\nContent-Type: {self.mime}\r\nContent-Length: {len(data)}{headers}"
        return f"{head}\r\nConnection: close\r\n\r\n".encode("latin-1") + data


def _page(title: str, body: str = "", head: str = "") -> str:
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>{head}</head>'
        f"<body>{body}</body></html>"
    )


_FORBIDDEN, _LIMITED, _AWAY = "403 Forbidden", "429 Too Many Requests", "503 Service Temporarily Unavailable"
_CF = ("Server: cloudflare", "CF-RAY: {token}-FRA")
_CF_CHALLENGE = _page(
    "Just a moment...",
    "<noscript>Enable JavaScript and cookies to continue</noscript><script>window._cf_chl_opt = {cRay: '{token}', "
    "cUPMDTk: '{path}?__cf_chl_tk={token}'}; var a = document.createElement('script'); "
    "a.src = '/cdn-cgi/challenge-platform/h/g/orchestrate/chl_page/v1?ray={token}';</script>",
    '<meta name="robots" content="noindex,nofollow"><meta http-equiv="refresh" content="360">',
)
_AKAMAI_DENIED = (
    "<HTML><HEAD>\n<TITLE>Access Denied</TITLE>\n</HEAD><BODY>\n<H1>Access Denied</H1>\n \nYou don't have permission "
    'to access "http&#58;&#47;&#47;host{path}" on this server.<P>\nReference&#32;&#35;18&#46;{token}\n'
    "<P>\nhttps&#58;&#47;&#47;errors&#46;edgesuite&#46;net&#47;18&#46;{token}\n</BODY>\n</HTML>\n"
)
_LOGIN = _page(
    "Sign in",
    '<form action="/session" method="post"><input name="user"><input name="password" type="password">'
    '<button>Sign in</button></form><a href="/forgot">Forgot your password?</a>',
)

INTERSTITIALS = (
    Interstitial("cloudflare-403", "cloudflare", _CF_CHALLENGE, _FORBIDDEN, (*_CF, "cf-mitigated: challenge")),
    Interstitial("cloudflare-200", "cloudflare", _CF_CHALLENGE, headers=(*_CF, "cf-mitigated: challenge")),
    Interstitial("cloudflare-429", "cloudflare", "", _LIMITED, (*_CF, "cf-mitigated: challenge")),
    Interstitial("cloudflare-503", "cloudflare", _CF_CHALLENGE, _AWAY, _CF),
    Interstitial("cloudflare-unmarked", "cloudflare", _CF_CHALLENGE),
    Interstitial(
        "cloudflare-blocked",
        "cloudflare",
        _page(
            "Attention Required! | Cloudflare",
            "<div id='cf-error-details'><h1>Sorry, you have been blocked</h1><p>You are unable to access host</p>"
            "<p>Cloudflare Ray ID: <b>{token}</b></p><a href='https://www.cloudflare.com/5xx-error-landing'>x</a></div>",
        ),
        _FORBIDDEN,
        _CF,
    ),
    Interstitial(
        "cloudflare-1015",
        "cloudflare",
        _page(
            "Access denied", "<div id='cf-error-details'>Error 1015 Ray ID: {token} You are being rate limited</div>"
        ),
        _LIMITED,
        _CF,
    ),
    Interstitial(
        "turnstile",
        "turnstile",
        _page(
            "Human check",
            "<p>Verify that you are human to go on.</p><div class='cf-turnstile' data-sitekey='0x4AAA'></div>"
            "<script src='https://challenges.cloudflare.com/turnstile/v0/api.js'></script>",
        ),
    ),
    Interstitial("akamai-denied", "akamai", _AKAMAI_DENIED, _FORBIDDEN, ("Server: AkamaiGHost",)),
    Interstitial("akamai-denied-200", "akamai", _AKAMAI_DENIED),
    Interstitial(
        "akamai-behavioral",
        "akamai",
        _page(
            "Challenge Validation",
            '<div id="sec-if-cpt-container" class="behavioral-content"></div><script>/* {token} */</script>',
        ),
        "428 Precondition Required",
    ),
    Interstitial(
        "akamai-refresh",
        "akamai",
        '<html><head><meta http-equiv="refresh" content="5; URL=\'{path}?bm-verify={token}\'" /></head>'
        "<body><script>var i = 17; var xhr = new XMLHttpRequest();</script></body></html>",
    ),
    Interstitial(
        "datadome-403",
        "datadome",
        _page(
            "host",
            "<p id='cmsg'>Please enable JS and disable any ad blocker</p><script>var dd={'rt':'c','cid':'{token}',"
            "'host':'geo.captcha-delivery.com'}</script><script src='https://ct.captcha-delivery.com/c.js'></script>",
        ),
        _FORBIDDEN,
        ("X-DataDome: protected", "X-DD-B: 1", "Set-Cookie: datadome={token}; Max-Age=31536000"),
    ),
    Interstitial(
        "datadome-200",
        "datadome",
        _page("host", "<iframe src='https://geo.captcha-delivery.com/interstitial/?cid={token}'></iframe>"),
    ),
    Interstitial(
        "perimeterx-403",
        "perimeterx",
        _page(
            "Access to this page has been denied",
            "<script>window._pxUuid = '{token}'; window._pxAppId = 'PXxxxxxxxx';</script><div id='px-captcha'></div>",
            '<meta name="description" content="px-captcha">',
        ),
        _FORBIDDEN,
    ),
    Interstitial(
        "human-hold",
        "perimeterx",
        _page(
            "Robot or human?", "<p>Press &amp; hold to confirm you are a human</p><div id='px-captcha'></div>{token}"
        ),
    ),
    Interstitial(
        "incapsula-200",
        "imperva",
        "<html style='height:100%'><head><META NAME='ROBOTS' CONTENT='NOINDEX, NOFOLLOW'></head><body>"
        "<iframe id='main-iframe' src='/_Incapsula_Resource?SWUDNSAI=31&incident_id={token}' width='100%'>"
        "Request unsuccessful. Incapsula incident ID: {token}</iframe></body></html>",
        headers=("X-Iinfo: {token}", "X-CDN: Incapsula"),
    ),
    Interstitial(
        "incapsula-403", "imperva", _page("Error", "Incapsula incident ID: {token}"), _FORBIDDEN, ("X-CDN: Imperva",)
    ),
    Interstitial(
        "imperva-pardon",
        "imperva",
        _page("Pardon Our Interruption", "<h1>Pardon Our Interruption</h1><p>{token}</p>"),
    ),
    Interstitial("aws-challenge", "aws-waf", "", "202 Accepted", ("x-amzn-waf-action: challenge",)),
    Interstitial("aws-captcha", "aws-waf", "", "405 Method Not Allowed", ("x-amzn-waf-action: captcha",)),
    Interstitial(
        "aws-unmarked",
        "aws-waf",
        _page("", "<script>window.gokuProps = {'key':'{token}'};</script><div id='challenge-container'></div>"),
    ),
    Interstitial(
        "cloudfront-403",
        "aws-waf",
        _page(
            "ERROR: The request could not be satisfied",
            "<h1>403 ERROR</h1>Request blocked. <pre>Generated by cloudfront (CloudFront)\nRequest ID: {token}</pre>",
        ),
        _FORBIDDEN,
    ),
    Interstitial(
        "sucuri-script",
        "sucuri",
        _page("You are being redirected...", "<script>var s={},u,c; sucuri_cloudproxy_js='{token}';</script>"),
    ),
    Interstitial(
        "sucuri-denied",
        "sucuri",
        _page("Sucuri WebSite Firewall - Access Denied", "<h1>Access Denied</h1>Sucuri WebSite Firewall {token}"),
        _FORBIDDEN,
        ("X-Sucuri-ID: 15005",),
    ),
    Interstitial(
        "ddos-guard",
        "ddos-guard",
        _page(
            "DDoS-Guard",
            "Checking your browser before accessing host. <script data-ddg-origin='true' "
            "src='https://check.ddos-guard.net/check.js'></script>",
        ),
        _FORBIDDEN,
        ("Server: ddos-guard", "Set-Cookie: __ddg1_={token}"),
    ),
    Interstitial(
        "hcaptcha-wall",
        "hcaptcha",
        _page(
            "One more step",
            "<p>Please complete the captcha below.</p><div class='h-captcha'></div>"
            "<script src='https://js.hcaptcha.com/1/api.js'></script>",
        ),
    ),
    Interstitial(
        "recaptcha-wall",
        "recaptcha",
        _page(
            "Are you a robot?",
            "<p>Confirm that you are not a robot.</p><div class='g-recaptcha' data-sitekey='6L'></div>"
            "<script src='https://www.google.com/recaptcha/api.js'></script>",
        ),
    ),
    Interstitial(
        "unusual-traffic",
        "google",
        _page(
            "https://host{path}",
            "<form action='/sorry/index'>Our systems have detected unusual traffic from your computer network.</form>",
        ),
        _LIMITED,
    ),
    Interstitial(
        "anubis",
        "anubis",
        _page(
            "Making sure you&#39;re not a bot!",
            '<script id="anubis_challenge" type="application/json">{"challenge":"{token}"}</script>'
            "<script src='/.within.website/x/cmd/anubis/static/js/main.mjs'></script>"
            "<p>Protected by <a href='https://github.com/TecharoHQ/anubis'>Anubis</a></p>",
        ),
        headers=("Cache-Control: no-store",),
    ),
    Interstitial(
        "kasada",
        "kasada",
        "<html><head></head><body><script>window.KPSDK={};KPSDK.now=1;</script>"
        "<script src='/149e9513-01fa-4fb0-aad4-566afd725d1b/2d206a39/ips.js?{token}'></script></body></html>",
        _LIMITED,
    ),
    Interstitial(
        "f5-rejected",
        "f5",
        "<html><head><title>Request Rejected</title></head><body>The requested URL was rejected. Please consult with "
        "your administrator.<br><br>Your support ID is: {token}</body></html>",
    ),
    Interstitial("vercel", "vercel", "", _LIMITED, ("x-vercel-mitigated: challenge",)),
    Interstitial(
        "wordfence",
        "wordfence",
        _page("Your access to this site has been limited", "<p>Generated by Wordfence at {token}</p>"),
        _AWAY,
    ),
    Interstitial(
        "alibaba",
        "alibaba",
        "<html><script>var arg1='{token}'; document.cookie='acw_sc__v2='+arg1; location.reload();</script></html>",
    ),
    Interstitial(
        "javascript",
        "javascript",
        _page("", "<noscript>Please enable JavaScript to continue: we are checking your browser.</noscript>{token}"),
    ),
    Interstitial(
        "parked",
        "parked",
        _page("host", "<h1>host</h1><script src='https://sedoparking.com/frmpark/{token}'></script>"),
    ),
    Interstitial("for-sale", "parked", _page("host", "<h1>host</h1><p>This domain is for sale. {token}</p>")),
    Interstitial("empty", "empty", ""),
    Interstitial("login-page", "", _LOGIN),
    Interstitial("login-redirect", "", "", "302 Found", ("Location: /login?next={path}",)),
    Interstitial("maintenance", "", _page("Maintenance", "<h1>We will be back soon.</h1>")),
    Interstitial(
        "unknown-vendor",
        "",
        _page("Wall", "<p>Request {token} to {path} was taken into consideration. Come back some other day.</p>"),
    ),
    Interstitial("refused", "", _page("403 Forbidden", "<center><h1>403 Forbidden</h1></center>nginx"), _FORBIDDEN),
)
"""All of them; those without a vendor are told by evidence."""
