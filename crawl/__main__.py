"""`python -m crawl` is `xyro`."""

from crawl.cli.main import main

main()
