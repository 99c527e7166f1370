"""Tells which entry of [[sites]] holds for a page's host.

site_sentences.py    sentences of `xyro why`: names of headers and cookies, never a value
"""
