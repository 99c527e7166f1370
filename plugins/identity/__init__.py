"""`xyro identity`: what a crawler publishes so that sites can know its requests, and whom to ask about them.

    identity_files.py  writes the files: the key, its directory, signed, and how web servers are to serve it
    key_directory.py   the directory of keys (JWKS), as draft-meunier-http-message-signatures-directory has it
    bot_page.py        a page for people: who reads, what for, how to keep it out, how to verify it

Requests are signed where they are sent (xyro/request_signing.py); nothing here runs beside a crawl.
"""
