"""The floor that every package stands on: what is said between them, and in what words. It imports none of them.

What comes in is the outside world in its raw forms: a URL as a person typed it or a page wrote it (`urls`), bytes from
another node (`codec`, many messages in `frames`), the time of day (`clock`), strings of strangers that must be shown
(`text`), and whatever goes wrong (`errors` says whose fault it is). What goes out are values that need no second check:
canonical URLs, ids of pages (`ids`), frozen messages (`messages`), commands (`commands`) and questions (`questions`) on
the topics (`topics`) of a bus (`bus`), the owners of partitions (`placement`), numbers of seconds (`durations`) and of
bytes (`sizes`), moments (`moments`), uses of contents (`uses`), differences of texts (`word_diff`), log lines
(`log_setup`).

What always holds:

- A message that exists is valid: its constructor checked it, also after decoding.
- Two spellings of one URL are one string; canonical(canonical(u)) == canonical(u), and resolve agrees with canonical.
- Everything here but `clock`, `bus`, `plug_ins` and `log_setup` is pure: the same arguments, the same answer, no I/O.
- Hostile input ends in InputError or its child CodecError (or None, for a link on a page), never in anything else, and
  costs time and memory in proportion to its length.
- partition_of and the codec's version are formats: a stored crawl and a running cluster depend on them, tests pin them.
"""
