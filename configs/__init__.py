"""Settings: what an operator may set, where it comes from, and what is wrong with it.

In: TOML files, the environment (XYRO_SECTION__KEY), the command line; later beats earlier, key by key.

    schema.py      every setting: section, type, range, default (frozen structs)
    load.py        load(paths, environ, overrides) -> Settings
    parsed_types.py   suffixes that are read because a plug-in parses their media type
    webhook_secret.py  the key that the secret of a webhook stands for
    gone.py        settings that went, and what stands for them now
    default.toml   every key once, with its unit and what it costs: the reference
    single.toml    one machine         cluster.toml   64 partitions         fresh.toml   freshness first
    xml.toml       XML first           archive.toml   everything once, then rarely
    serve.toml     what `xyro serve` begins with: below all files
    xyro.service   a unit of systemd

Out: one frozen Settings. frontier, service and plugins read it; the packages below them take plain arguments.

What always holds: a Settings that exists is whole and in range; anything else is one InputError that names the place
(file or variable, section, key), what was expected there and what was found. Nothing is guessed or passed over.
`import configs` is free: msgspec and the TOML reader come with `configs.load`.
"""
