"""Remembers what plug-ins of installed packages (`xyro.values`, `xyro.parsers`) failed at, page by page.

plug_in_faults.py    from the reader's answer to a row of the page, and to a sentence of `xyro why`
"""
