"""Every setting: its section, type, range and default. Units and costs are told in default.toml.

A field's Meta description is the end of the sentence "expected ...": it is what a person reads after a mistake.
None as default means "not set"; such a key has no value that would say the same.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

SPAN = {"span": True}
"""also as a text with its unit, "10m": load.py makes seconds of it"""
SIZE = {"size": True}
"""also as a text with its unit, "200 GB": load.py makes bytes of it"""
SECRET = {"secret": True}
"""what stands there may be a secret, or be taken for the place of one: load.py never shows it"""
Seconds = Annotated[
    float, Meta(ge=0, le=1e9, description='a number of seconds, 0 or more, or a text such as "10m"', extra=SPAN)
]
Timeout = Annotated[
    float, Meta(gt=0, le=1e6, description='a number of seconds above 0, or a text such as "10m"', extra=SPAN)
]
SpanFromOne = Annotated[
    float, Meta(ge=1, le=1e9, description='a number of seconds, 1 or more, or a text such as "30d"', extra=SPAN)
]
Number = Annotated[float, Meta(ge=0, le=1e9, description="a number, 0 or more")]
Whole = Annotated[int, Meta(ge=0, le=2**53, description="a whole number, 0 or more")]
Counting = Annotated[int, Meta(ge=1, le=2**53, description="a whole number, 1 or more")]
Switch = Annotated[bool, Meta(description="true or false")]
Glob = Annotated[
    str,
    Meta(min_length=1, max_length=4096, description="URL patterns with * and ?, such as https://example.org/docs/*"),
]
Suffix = Annotated[
    str, Meta(pattern=r"^\.[^/.A-Z]+$", max_length=64, description='lower-case suffixes with their dot, such as ".jpg"')
]
Share = Annotated[float, Meta(ge=0, le=10_000, description="a number, 0 to 10000")]
Say = Annotated[float, Meta(ge=0, le=1, description="a number, 0 to 1")]
HostPattern = Annotated[
    str,
    Meta(pattern=r"^(\*\.)?[^\s/@*A-Z]+$", max_length=260, description='hosts, or "*.example.org" for all below'),
]
BodyKind = Annotated[Literal["HTML", "XML", "DTD"], Meta(description='"HTML", "XML" or "DTD"')]
Word = Annotated[str, Meta(pattern=r"^\w+$", max_length=64, description="single words of letters and digits")]
FormatName = Annotated[
    Literal["xml", "xhtml", "dtd", "entity", "rss", "atom", "jsonfeed", "sitemap", "sitemapindex"],
    Meta(
        description="any of xml, xhtml, dtd, entity, rss, atom, jsonfeed, sitemap, sitemapindex (of XML and feeds only)"
    ),
]
Turnovers = Annotated[float, Meta(ge=0.1, le=1000, description='a number of turnovers, 0.1 to 1000, or "auto"')]
Port = Annotated[int, Meta(ge=1, le=65_535, description="port numbers, 1 to 65535")]
Network = Annotated[
    str, Meta(min_length=2, max_length=64, description="networks, such as 10.0.0.0/8", extra={"check": "network"})
]
Server = Annotated[
    str,
    Meta(
        min_length=2,
        max_length=64,
        description="addresses of name servers, such as 9.9.9.9 or 127.0.0.1:5353",
        extra={"check": "server"},
    ),
]

GammaPoint = Annotated[
    tuple[
        Annotated[float, Meta(ge=0, le=1e18)],
        Annotated[float, Meta(ge=0, le=100)],
    ],
    Meta(description="pairs [pages read, gamma 0 to 100], the pages rising"),
]
BANDWIDTH = 'a number of reads a second, 0 or more, or a text with its unit, such as "4000/day"'
Pace = Annotated[
    str,
    Meta(pattern=r"^\d{1,12}(\.\d{1,9})?( ?/ ?(s|min|h|day))?$", max_length=40, description=BANDWIDTH),
]

HEADER = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
"""the name of a header (RFC 9110 5.1)"""
HeaderName = Annotated[str, Meta(pattern=f"^{HEADER}$", max_length=128)]
PlainValue = Annotated[str, Meta(pattern=r"^[!-~]([ -~]*[!-~])?$", max_length=4096)]
"""of a header: printable ASCII"""
RESERVED_HEADERS = frozenset({
    *("host", "user-agent", "from", "accept-encoding", "range", "referer", "signature", "signature-input"),
    *("if-range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "signature-agent"),
    *("connection", "keep-alive", "content-length", "content-type", "content-encoding", "transfer-encoding", "te"),
    *("trailer", "upgrade", "expect", "http2-settings", "max-forwards"),
})  # fmt: skip
"""headers that politeness, validators, framing or [identity] decide; and all that begin with proxy-"""

_USELESS = """
    7z aac aiff apk asf avi avif bin bmp bz2 cab class css csv deb dll dmg doc docx eot eps epub exe flac flv
    gif ico iso jar jpeg jpg js m4a m4v mid mjs mkv mobi mov mp3 mp4 mpeg mpg msi odp ods odt ogg ogv otf pdf
    pkg png ppt pptx ps psd rar rpm rtf so svg swf tar tgz tif tiff ttf txz wav webm webp whl wma wmv woff woff2
    xls xlsx xz zip zst
"""
SKIP_SUFFIXES = tuple(f".{suffix}" for suffix in _USELESS.split())
"""Images, sound, film, fonts, archives, programs, office papers, style sheets and scripts (Scrapy's and Nutch's lists).
Not among them: .gz (sitemaps come so), .txt and .xml."""


class Section(Struct, frozen=True, forbid_unknown_fields=True):
    """A table of the file: built from defaults and checked values only."""


class CrawlSettings(Section, frozen=True):
    """[crawl]: what belongs to the crawl and when it ends."""

    scope: Annotated[Literal["host", "domain", "any"], Meta(description='"host", "domain" or "any"')] = "host"
    max_depth: Whole | None = None
    include: tuple[Glob, ...] = ()
    exclude: tuple[Glob, ...] = ()
    skip_suffixes: tuple[Suffix, ...] = SKIP_SUFFIXES
    fold_slashes: Switch = True
    confirm_dead: Seconds = 86_400.0
    max_pages: Whole = 0
    max_seconds: Seconds = 0.0
    partitions: Annotated[int, Meta(ge=1, le=4096, description="a whole number, 1 to 4096")] = 1
    refresh: Switch = False


class RuleTable(Section, frozen=True):
    """[[rules]]: other bounds for the URLs of a host, of a pattern, or of both; the first rule that fits decides."""

    host: Annotated[
        str,
        Meta(pattern=r"^(\*\.)?[^\s/@*A-Z]+$", max_length=260, description='a host, or "*.example.org" for all below'),
    ] = ""
    pattern: Annotated[str, Meta(min_length=1, max_length=4096, description="a URL pattern with * and ?")] = ""
    max_depth: Whole | None = None
    include: tuple[Glob, ...] = ()
    exclude: tuple[Glob, ...] = ()


class PolitenessSettings(Section, frozen=True):
    """[politeness]: how long a host is left alone between two reads."""

    min_delay: Seconds = 2.0
    factor: Number = 5.0
    factor_cap: Seconds = 30.0
    ip_delay: Seconds = 0.5
    net_delay: Seconds = 0.0
    domain_delay: Seconds = 0.0
    crawl_delay_cap: Seconds = 300.0
    delay: Seconds | None = None

    @property
    def usual_gap(self) -> float:
        """Seconds between two reads of a host of which nothing else is known."""
        return self.min_delay if self.delay is None else self.delay


class StandingSettings(Section, frozen=True):
    """[standing]: what hosts may take of the crawl before their pages have shown what they are worth."""

    new_hosts: Annotated[int, Meta(ge=0, le=2**32, description="a whole number, 0 to 4294967296")] = 131_072
    host_pages: Counting = 4096


class SecretSource(Section, frozen=True):
    """Where a secret stands: an environment variable, or a file."""

    env: Annotated[str, Meta(pattern=r"^\w+$", max_length=128)] = ""
    file: Annotated[str, Meta(pattern=r"^[^\x00]+$", max_length=4096)] = ""


Login = Annotated[
    SecretSource, Meta(description='{ env = "NAME" } or { file = "PATH" }, with user:password', extra=SECRET)
]
ProxyUrl = Annotated[
    str,
    Meta(
        pattern=r"^(http://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+):\d{1,5}/?)?$",
        max_length=300,
        description='an http:// address with its port and without user or password, such as "http://127.0.0.1:3128"',
        extra=SECRET,
    ),
]


class FetchSettings(Section, frozen=True):
    """[fetch]: reading the web, and what a server may cost us."""

    concurrency: Annotated[int, Meta(ge=1, le=65_536, description="a whole number, 1 to 65536")] = 256
    newcomer_share: Annotated[float, Meta(gt=0, le=1, description="a share above 0, up to 1")] = 0.125
    readers: (
        Annotated[int, Meta(ge=0, le=1024, description='a number of processes, 0 to 1024, or "auto"')] | Literal["auto"]
    ) = 0
    user_agent: Annotated[
        str, Meta(pattern=r"^[A-Za-z_-]+$", max_length=64, description="a product token of letters, - and _ (RFC 9309)")
    ] = "Xyro"
    contact: Annotated[
        str,
        Meta(
            pattern=r"^([!-'*-~]+@[!-'*-~]+|https?://[!-'*-~]+)?$",
            max_length=256,
            description="a mail address or URL, without blanks or brackets",
        ),
    ] = ""
    connect_timeout: Timeout = 10.0
    first_byte_timeout: Timeout = 15.0
    header_timeout: Timeout = 20.0
    total_timeout: Timeout = 120.0
    min_throughput: Whole = 1000
    max_body: Counting = 8 * 2**20
    max_ratio: Annotated[float, Meta(ge=1, le=1e6, description="a number, 1 or more")] = 200.0
    ports: tuple[Port, ...] = ()
    name_servers: tuple[Server, ...] = ()
    only_net: tuple[Network, ...] = ()
    allow_private: tuple[Network, ...] = ()
    signature: Annotated[Literal["bytes", "text", "links"], Meta(description='"bytes", "text" or "links"')] = "bytes"
    client: Annotated[Literal["fast", "aiohttp"], Meta(description='"fast" or "aiohttp"')] = "fast"
    parsers: Annotated[
        dict[
            Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9.+-]*/[a-z0-9][a-z0-9.+-]*$", max_length=128)],
            Annotated[str, Meta(pattern=r"^[\w.-]+$", max_length=64)],
        ],
        Meta(description='a media type -> plug-in table, such as { "text/markdown" = "markdown" }'),
    ] = {}
    headers: tuple[
        Annotated[
            str,
            Meta(
                pattern=f"^{HEADER}: *[!-~]([ -~]*[!-~])?$",
                max_length=4224,
                description="headers such as Accept-Language: de",
                extra={"check": "header", **SECRET},
            ),
        ],
        ...,
    ] = ()
    proxy: ProxyUrl = ""
    proxy_auth: Login | None = None
    proxy_resolves: Switch = False
    ca_file: Annotated[str, Meta(pattern=r"^[^\x00]*$", max_length=4096, description="a file name")] = ""


class IdentitySettings(Section, frozen=True):
    """[identity]: how sites can know the crawler, and what it reads for."""

    purpose: tuple[
        Annotated[
            Literal["search", "ai-input", "ai-train"], Meta(description='any of "search", "ai-input", "ai-train"')
        ],
        ...,
    ] = ("search",)
    sign: Annotated[Literal["never", "challenged", "always"], Meta(description='"never", "challenged" or "always"')] = (
        "never"
    )
    key: Annotated[str, Meta(pattern=r"^[^\x00]*$", max_length=4096, description="a file name")] = ""
    agent: Annotated[
        str,
        Meta(
            pattern=r"^(https://[a-z0-9.-]+(:\d{1,5})?)?$",
            max_length=256,
            description='an https:// address without a path, such as "https://bot.example.org"',
        ),
    ] = ""


class OpicSettings(Section, frozen=True):
    """[opic]: page importance."""

    damping: Annotated[float, Meta(gt=0, lt=1, description="a number between 0 and 1")] = 0.85
    window: Turnovers | Literal["auto"] = 16.0
    spend_ratio: Number = 2.0
    sweep_target: Annotated[float, Meta(gt=0, le=1, description="a share above 0, up to 1")] = 0.1
    virtual: Annotated[Literal["damping", "edge"], Meta(description='"damping" or "edge"')] = "damping"
    edge_weight: Annotated[float, Meta(ge=0.001, le=1000, description="a number, 0.001 to 1000")] = 1.0
    ordinary_weight: Share = 1.0
    unread_weight: Share = 1.0
    sites: Switch = False
    site_weight: Annotated[float, Meta(ge=0, le=1, description="a share, 0 to 1")] = 0.0
    internal_weight: Say = 1.0
    query_weight: Say = 1.0
    values: Annotated[str, Meta(pattern=r"^[\w.-]*$", max_length=64, description="the name of a plug-in")] = ""


class FocusTable(Section, frozen=True):
    """[[focus]]: pages that the virtual page pays another share; the first table that fits decides."""

    weight: Share
    patterns: tuple[Glob, ...] = ()
    hosts: tuple[HostPattern, ...] = ()
    kinds: tuple[BodyKind, ...] = ()
    words: tuple[Word, ...] = ()
    leads_to: tuple[FormatName, ...] = ()


class RefreshSettings(Section, frozen=True):
    """[refresh]: when a page is read again."""

    gamma: Annotated[float, Meta(ge=0, le=100, description='a percentage, 0 to 100, or "auto"')] | Literal["auto"] = (
        50.0
    )
    gamma_schedule: tuple[GammaPoint, ...] = ()
    target_freshness: Annotated[float, Meta(ge=0, lt=1, description="a number, 0 or more and below 1")] = 0.0
    bandwidth: Annotated[float, Meta(ge=0, le=1e9, description=BANDWIDTH)] | Pace = 0.0
    bandwidth_covers: Annotated[Literal["refresh", "all"], Meta(description='"refresh" or "all"')] = "refresh"
    policy: Annotated[
        Literal["obsolescence", "mixed", "freshness"], Meta(description='"obsolescence", "mixed" or "freshness"')
    ] = "obsolescence"
    alpha: Share = 1.0
    beta: Share = 1.0
    least_chance: Annotated[float, Meta(ge=0, lt=1, description="a share, 0 or more and below 1")] = 0.0
    min_interval: Seconds = 0.0
    max_interval: SpanFromOne = 31_536_000.0
    min_importance: Number = 0.0
    hopeless: Say = 0.0
    hopeless_interval: SpanFromOne = 604_800.0
    memory: Annotated[float, Meta(ge=2, le=1e9, description="a number of reads, 2 or more")] = 100.0
    rate_cap: Annotated[float, Meta(ge=0, le=1e9, description="a number, 0 or more")] = 0.0
    regular: Switch = True
    time_unit: Annotated[int, Meta(ge=1, le=86_400, description="a whole number of seconds, 1 to 86400")] = 60
    audit: Annotated[float, Meta(ge=0, le=50, description="a percentage, 0 to 50")] = 1.0
    late_cost: Number = 1.0
    guide: Annotated[Literal["importance", "interest"], Meta(description='"importance" or "interest"')] = "importance"


class BudgetTable(Section, frozen=True):
    """[[budgets]]: how many pages a day a host is asked for; the first table that fits decides."""

    host: HostPattern = ""
    pages_per_day: Counting = 1000


class SiteTable(Section, frozen=True):
    """[[sites]]: how some hosts are asked; the first table that fits decides."""

    host: HostPattern = ""
    headers: Annotated[
        dict[HeaderName, PlainValue | SecretSource],
        Meta(
            description='a name -> value table; a secret value is { env = "NAME" } or { file = "PATH" }', extra=SECRET
        ),
    ] = {}
    cookies: Annotated[
        dict[
            Annotated[str, Meta(pattern=f"^{HEADER}$", max_length=128)],
            Annotated[str, Meta(pattern=r"^[!#-+\--:<-\[\]-~]*$", max_length=4096)] | SecretSource,
        ],
        Meta(
            description='a name -> value table; a secret value is { env = "NAME" } or { file = "PATH" }', extra=SECRET
        ),
    ] = {}
    auth: Login | None = None
    delay: Seconds | None = None
    signature: Annotated[Literal["bytes", "text", "links"], Meta(description='"bytes", "text" or "links"')] | None = (
        None
    )
    proxy: ProxyUrl | None = None
    min_interval: Seconds | None = None
    max_interval: SpanFromOne | None = None


DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
"""as `[[blackouts]] days` names them, in the order of date.weekday()"""


class BlackoutTable(Section, frozen=True):
    """[[blackouts]]: hours in which a host is left alone; all tables that fit count."""

    host: HostPattern = ""
    hours: Annotated[
        str,
        Meta(
            pattern=r"^[0-9:,-]+$",
            max_length=200,
            description='hours such as "8-18" or "22:30-6,12-13"',
            extra={"check": "hours"},
        ),
    ] = "0-24"
    days: Annotated[
        str,
        Meta(
            pattern=r"^[a-z,-]+$",
            max_length=60,
            description='days such as "mon-fri" or "sat,sun"',
            extra={"check": "days"},
        ),
    ] = "mon-sun"
    timezone: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=64,
            description='time zones such as "UTC" or "Europe/Paris"',
            extra={"check": "timezone"},
        ),
    ] = "UTC"


class StoreSettings(Section, frozen=True):
    """[store]: the data directory."""

    data: Annotated[str, Meta(pattern=r"^[^\x00]+$", max_length=4096, description="a directory name")] = "xyro-data"
    commit_seconds: Annotated[float, Meta(ge=0, le=60, description="a number of seconds, 0 to 60", extra=SPAN)] = 0.05
    commit_reports: Annotated[int, Meta(ge=1, le=65_536, description="a whole number, 1 to 65536")] = 256
    snapshot_bytes: Annotated[int, Meta(ge=2**16, le=2**53, description="a whole number of bytes, 65536 or more")] = (
        64 * 2**20
    )
    links: Switch = True
    leases_per_host: Annotated[int, Meta(ge=1, le=65_536, description="a whole number, 1 to 65536")] = 64
    versions: Annotated[int, Meta(ge=0, le=2**31, description="a whole number, 0 or more")] = 0
    version_days: Number = 0.0


class KeepSettings(Section, frozen=True):
    """[keep]: what pages show, for people and programs that read it."""

    warc: Switch = False
    text: Switch = False
    extractor: Annotated[
        Literal["xyro", "resiliparse", "trafilatura"], Meta(description='"xyro", "resiliparse" or "trafilatura"')
    ] = "xyro"
    directory: Annotated[str, Meta(pattern=r"^[^\x00]*$", max_length=4096, description="a directory name, or none")] = (
        ""
    )
    file_bytes: Annotated[
        int, Meta(ge=2**16, le=2**40, description='a size of 64 KiB or more, such as "1 GB"', extra=SIZE)
    ] = 10**9
    bytes: Annotated[int, Meta(ge=0, le=2**60, description='a size, such as "200 GB"; 0 = no bound', extra=SIZE)] = 0
    full: Annotated[Literal["skip", "wait"], Meta(description='"skip" or "wait"')] = "skip"


class BackupSettings(Section, frozen=True):
    """[backup]: copies of the data directory that a running process makes by itself."""

    directory: Annotated[str, Meta(pattern=r"^[^\x00]*$", max_length=4096, description="a directory name, or none")] = (
        ""
    )
    every: SpanFromOne = 86_400.0
    keep: Counting = 7


class LoaderSettings(Section, frozen=True):
    """[loader]: XML documents and the parts they need."""

    store: Switch = True
    validate: Switch = True
    keep: tuple[FormatName, ...] = ("xml", "xhtml", "dtd", "entity", "rss", "atom", "jsonfeed")
    extras: tuple[
        Annotated[
            Literal["xinclude", "stylesheet", "xlink"], Meta(description='any of "xinclude", "stylesheet", "xlink"')
        ],
        ...,
    ] = ("xinclude", "stylesheet", "xlink")
    catalogs: tuple[Annotated[str, Meta(pattern=r"^[^\x00]+$", max_length=4096, description="file names")], ...] = ()
    revalidate: Switch = True
    patience: Seconds = 3_600.0
    part_age: Seconds = 86_400.0
    part_cache: Whole = 64 * 2**20
    waiting_cache: Whole = 16 * 2**20


class Api(Section, frozen=True):
    """[api]: the HTTP interface of a running crawler."""

    host: Annotated[str, Meta(pattern=r"^[^\s/]+$", max_length=253, description="an address to listen on")] = (
        "127.0.0.1"
    )
    port: Annotated[int, Meta(ge=0, le=65_535, description="a port number, 0 to 65535")] = 0


class PublishSettings(Section, frozen=True):
    """[publish]: what sites tell us of their own pages."""

    listen: Annotated[
        str,
        Meta(
            pattern=r"^$|^(\[[0-9A-Fa-f:.]+\]|[^\s/:\[\]]+):\d{1,5}$",
            max_length=260,
            description='host:port, such as "0.0.0.0:8090", or "" for none',
        ),
    ] = ""
    proxies: tuple[Network, ...] = ()
    sender_header: Annotated[str, Meta(pattern=r"^[A-Za-z0-9-]{1,64}$", description="the name of a header")] = (
        "X-Forwarded-For"
    )
    tokens: Annotated[
        dict[
            Annotated[str, Meta(pattern=r"^[^\s/@*A-Z]+$", max_length=260)],
            Annotated[str, Meta(pattern=r"^[!-~]+$", min_length=16, max_length=256)],
        ],
        Meta(
            description='a host -> token table, such as { "example.org" = "..." }, tokens of 16 characters or more',
            extra=SECRET,
        ),
    ] = {}
    deadline: SpanFromOne = 3_600.0
    host_urls: Counting = 10_000
    urls: Counting = 100_000
    key_age: Annotated[
        float, Meta(ge=60, le=1e8, description='a number of seconds, 60 or more, or a text such as "1d"', extra=SPAN)
    ] = 86_400.0
    websub: Switch = False
    callback: Annotated[
        str,
        Meta(
            pattern=r"^$|^https?://[!-~]+$",
            max_length=1000,
            description="a URL of http or https, or empty",
            extra=SECRET,
        ),
    ] = ""


class ClusterTable(Section, frozen=True):
    """[[clusters]]: pages that are refreshed together."""

    name: Annotated[str, Meta(pattern=r"^[\w.-]+$", max_length=64, description="a word")] = ""
    urls: tuple[
        Annotated[str, Meta(pattern=r"^https?://", max_length=4096, description="URLs of http or https")], ...
    ] = ()
    patterns: tuple[Glob, ...] = ()
    window: Timeout = 600.0


class ChangeSettings(Section, frozen=True):
    """[changes]: the stream of what changed."""

    record: Switch = False
    bytes: Annotated[int, Meta(ge=2**16, le=2**53, description="a whole number of bytes, 65536 or more")] = 256 * 2**20


class MetricSettings(Section, frozen=True):
    """[metrics]: what Prometheus may ask."""

    serve: Switch = False
    listen: Annotated[
        str,
        Meta(
            pattern=r"^$|^(\[[0-9A-Fa-f:.]+\]|[^\s/:\[\]]+):\d{1,5}$",
            max_length=260,
            description='host:port, such as "0.0.0.0:9469", or "" for none',
        ),
    ] = ""


class SinkTable(Section, frozen=True):
    """[[sinks]]: where changes are delivered as they come."""

    name: Annotated[str, Meta(pattern=r"^[\w-]+$", max_length=64, description="a word of letters, digits, _ and -")] = (
        ""
    )
    path: Annotated[str, Meta(pattern=r"^[^\x00]*$", max_length=4096, description="a directory name")] = ""
    url: Annotated[
        str,
        Meta(
            pattern=r"^$|^(https?|nats|tls|kafka|kafka\+tls)://[!-~]+$",
            max_length=4096,
            description="a URL of http, https, nats, tls, kafka or kafka+tls",
            extra=SECRET,
        ),
    ] = ""
    topic: Annotated[
        str, Meta(pattern=r"^[\w.-]*$", max_length=249, description="a subject or topic: words and dots")
    ] = ""
    command: tuple[
        Annotated[str, Meta(pattern=r"^[^\x00]*$", max_length=4096, description="words of a command", extra=SECRET)],
        ...,
    ] = ()
    plugin: Annotated[str, Meta(pattern=r"^[\w.-]*$", max_length=64, description="the name of a plug-in")] = ""
    where: Annotated[str, Meta(max_length=4096, description='a condition, such as "importance > 2"')] = ""
    secret: Annotated[str, Meta(max_length=256, description="a secret of 256 characters at most", extra=SECRET)] = ""
    batch: Annotated[int, Meta(ge=1, le=10_000, description="a whole number of changes, 1 to 10000")] = 500
    wait: Annotated[float, Meta(ge=0, le=3600, description="a number of seconds, 0 to 3600", extra=SPAN)] = 1.0
    attempts: Counting = 8
    roll: Annotated[int, Meta(ge=2**12, le=2**53, description="a whole number of bytes, 4096 or more")] = 64 * 2**20


class ClusterSettings(Section, frozen=True):
    """[cluster]: the nodes that are one crawl."""

    join: Annotated[
        str,
        Meta(
            pattern=r"^[^\x00-\x20]*$",
            max_length=4096,
            description="a broker's URL, or a folder of `xyro hub`",
            extra=SECRET,
        ),
    ] = ""
    ca: Annotated[str, Meta(pattern=r"^[^\x00]*$", max_length=4096, description="a file name")] = ""
    outbox: Annotated[int, Meta(ge=2**12, le=2**53, description="a whole number of bytes, 4096 or more")] = 67_108_864


class LogSettings(Section, frozen=True):
    """[log]: what is told while it runs."""

    level: Annotated[
        Literal["debug", "info", "warning", "error"], Meta(description='"debug", "info", "warning" or "error"')
    ] = "info"
    format: Annotated[Literal["text", "json"], Meta(description='"text" or "json"')] = "text"


class Settings(Section, frozen=True):
    """All settings."""

    crawl: CrawlSettings = CrawlSettings()
    politeness: PolitenessSettings = PolitenessSettings()
    standing: StandingSettings = StandingSettings()
    fetch: FetchSettings = FetchSettings()
    identity: IdentitySettings = IdentitySettings()
    opic: OpicSettings = OpicSettings()
    refresh: RefreshSettings = RefreshSettings()
    store: StoreSettings = StoreSettings()
    keep: KeepSettings = KeepSettings()
    backup: BackupSettings = BackupSettings()
    loader: LoaderSettings = LoaderSettings()
    api: Api = Api()
    publish: PublishSettings = PublishSettings()
    changes: ChangeSettings = ChangeSettings()
    metrics: MetricSettings = MetricSettings()
    cluster: ClusterSettings = ClusterSettings()
    log: LogSettings = LogSettings()
    rules: tuple[RuleTable, ...] = ()
    focus: tuple[FocusTable, ...] = ()
    sites: tuple[SiteTable, ...] = ()
    budgets: tuple[BudgetTable, ...] = ()
    blackouts: tuple[BlackoutTable, ...] = ()
    clusters: tuple[ClusterTable, ...] = ()
    sinks: tuple[SinkTable, ...] = ()
