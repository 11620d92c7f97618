"""Learning on the device; comes with a later release."""
