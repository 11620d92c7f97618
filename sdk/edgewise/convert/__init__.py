"""From foreign models to ours."""
