"""What all tests of utils share."""

from hypothesis import HealthCheck, settings

# A machine that is busy is no failure of a property.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
