"""The loader: what an XML or DTD body links to, and which other resources it needs to be understood.

In: `XmlPage` (a whole body that xyro read) and the news that a wanted part cannot be had. Out: `LoadReport` (format,
links, dates of change as evidence, or a named error, and the parts a document still waits for), and ahead of the last
one a `Document` (the body and its judgement) for the warehouse. In between:

    parse      body -> events: unzipping, encodings, limits, lxml; every fault has a name
    xlinks     events -> links: XHTML, XLink, XInclude; the collector that all formats write into
    feeds      the same for RSS and Atom            sitemaps   the same for sitemaps and sitemap indexes
    json_feed  what is no XML but read like them    outline    what one read saw of a document as a whole
    needs      the external parts a document asks for, answered from memory; stand-ins for well-known DTDs
    catalog    well-known identifiers lead to local copies      slim   what a document takes from a DTD that many share
    parts      where the answers come from: shelf, library (what the warehouse has; library.py), or never
    modules    parts of documents that are read by themselves: nothing is held against them
    waiting    the documents that wait for parts, as a state table     bodies   their bodies, in memory or the library
    validate   body and parts -> verdict                                keep     both -> Document
    schemas    the schemas a document names, made one by flatten        judge_process, judge_child   where they are run
    grammar_trust   grammars and sites whose documents take too long    mend     feeds that a parser sees nothing of
    intake     the roof of the package: one page in, its reports out

What always holds:

- The parser does no input or output. Every external resource a document names (DTD, entity) is asked of `needs.Supply`,
  which has an answer from memory or none; the missing ones go out as `needs` and come back as pages of their own, read
  by xyro under its guard, robots and politeness.
- Time and memory are proportional to the size of what came; depth, nodes, text, expansion, unzipped size and the number
  of parts are bounded, and what goes over a bound ends in a named error. Links found before an error are kept.
- Nothing waits for ever: every waiting document has a deadline, which no event moves.
- No clock is read and nothing is awaited here: the caller says what time it is, and calls from one thread at a time.
"""
