"""Suffixes of media types that plug-ins parse: worth reading, though `skip_suffixes` has them."""

from __future__ import annotations

import msgspec

from xyro.configs.schema import CrawlSettings, Settings


def scope_settings(settings: Settings) -> CrawlSettings:
    """Return [crawl], without the suffixes of the media types of [fetch] parsers in skip_suffixes.

    The suffixes are those of Python's own table, the same on each machine: .csv, .pdf, .doc; not .docx.
    """
    crawl, parsers = settings.crawl, settings.fetch.parsers
    if not parsers:
        return crawl
    import mimetypes  # a crawl without plug-ins does not need it

    table = mimetypes.MimeTypes(filenames=())
    parsed = {suffix for mime in parsers for suffix in table.guess_all_extensions(mime, strict=False)}
    return msgspec.structs.replace(crawl, skip_suffixes=tuple(s for s in crawl.skip_suffixes if s not in parsed))
