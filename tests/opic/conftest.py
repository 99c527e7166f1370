"""Property tests here are pure and quick, but the machine may be busy: no deadline per example."""

from hypothesis import settings

settings.register_profile("opic", deadline=None)
settings.load_profile("opic")
