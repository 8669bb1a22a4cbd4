"""What holds for all tests."""

from hypothesis import HealthCheck, settings

# Timings never decide a test: the machine may be busy, and a first call loads what it needs.
settings.register_profile("hookline", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("hookline")
