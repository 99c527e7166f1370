"""`python -m crawl` is `xyro`."""

from crawl.cli import main

main()
