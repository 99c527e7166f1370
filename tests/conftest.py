"""Property tests have no deadline per example: a shared, slow core is no failure."""

from hypothesis import settings

settings.register_profile("xyro", deadline=None)
settings.load_profile("xyro")
