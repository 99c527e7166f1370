"""The names of the library for type checkers; __init__.py loads each when it is asked for."""

from xyro.answer import Answer as Answer
from xyro.guard import Guard as Guard
from xyro.library.crawl_directory import CrawlDirectory
from xyro.library.page_crawl import crawl as crawl
from xyro.library.page_feed import CrawledPage as CrawledPage
from xyro.page_plug_ins import ParsedPage as ParsedPage
from xyro.page_plug_ins import ReadPage as ReadPage
from xyro.pool import Pool as Pool
from xyro.reader import Reader as Reader
from xyro.reader import ReaderOptions as ReaderOptions
from xyro.wire.errors import InputError as InputError
from xyro.wire.errors import MachineError as MachineError
from xyro.wire.errors import TheirError as TheirError
from xyro.wire.messages import FetchOrder as FetchOrder
from xyro.wire.messages import PageReport as PageReport

Crawl = CrawlDirectory
open = CrawlDirectory
VERSION: str
NAMES: dict[str, str]

def __dir__() -> list[str]: ...
