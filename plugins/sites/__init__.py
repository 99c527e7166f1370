"""Tells which entry of [[sites]] holds for a page's host.

proxy_failures.py    proxies that lead nowhere: log, `xyro status`, closing report
site_sentences.py    sentences of `xyro why`: names of headers and cookies, never a value
"""
