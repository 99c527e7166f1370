"""Property tests without a deadline: a shared, slow core is no failure."""

from hypothesis import settings

settings.register_profile("wire", deadline=None)
settings.load_profile("wire")
