"""Skeletons: equal for soft 404s of one make, distinct for pages that a server makes of their numbers."""

from xyro.skeletons import skeleton


def page(number: int) -> tuple[str, bytes]:
    """A page of one template, whose words are numbers of its own."""
    rows = "".join(f"<tr><td>item {number * 1000 + row}<td>{(number * 7919 + row * 31) % 997}" for row in range(40))
    return f"http://a.example/big/{number}", f"<title>Big {number}</title><table>{rows}</table>".encode()


def test_pages_that_differ_in_many_numbers_are_pages():
    assert len({skeleton(*page(number)) for number in range(600)}) == 600


def test_pages_that_say_much_of_their_url_are_pages():
    pages = [
        (f"http://a.example/word/{word}", f"<p>{word} is a word. ".encode() * 50) for word in ("ant", "bee", "cow")
    ]
    assert len({skeleton(*each) for each in pages}) == 3


def test_apologies_that_tell_their_url_and_the_time_are_one():
    apologies = [
        (
            f"http://a.example/old/{name}.html",
            f"<h1>Not found</h1><p>/old/{name}.html is not here, {name}. Request {number}f{number}, 12:{number}, "
            f"{'See the sitemap of a.example. ' * 40}".encode(),
        )
        for number, name in enumerate(["ant", "bee", "cow"], 10)
    ]
    assert len({skeleton(*each) for each in apologies}) == 1
