"""`python -m xyro` is `xyro`."""

from xyro.service.cli.main import main

main()
