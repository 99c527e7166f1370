"""From settings to the loader: its intake, with the validator where documents are kept and judged."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from xyro.configs.schema import Settings

if TYPE_CHECKING:
    from xyro.loader.intake import Intake
    from xyro.loader.library import Library


def lazy_intake_of(settings: Settings, library: Library) -> Callable[[], Intake]:
    """Makes the intake when it is called. InputError: a catalog cannot be read, which is said at once."""
    if not settings.loader.catalogs:
        return partial(intake_of, settings, library)
    intake = intake_of(settings, library)
    return lambda: intake


def intake_of(settings: Settings, library: Library) -> Intake:
    """The intake of `[loader]`. InputError: a catalog cannot be read."""
    from xyro.loader.catalog import Catalog  # lxml and the rest of the loader: many a crawl meets no XML
    from xyro.loader.intake import Intake
    from xyro.loader.parse import ParseLimits
    from xyro.loader.validate import Validator

    loader = settings.loader
    limits = ParseLimits()
    validator = (
        Validator(limits, Catalog.load(loader.catalogs) if loader.catalogs else None)
        if loader.store and loader.validate
        else None
    )
    return Intake(
        limits=limits,
        part_cache_bytes=loader.part_cache,
        waiting_bytes=loader.waiting_cache,
        patience_s=loader.patience,
        fold_slashes=settings.crawl.fold_slashes,
        library=library,
        keep=loader.keep if loader.store else (),
        extras=loader.extras,
        validator=validator,
    )
