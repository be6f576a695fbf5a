"""Commands by which the operator changes what sessions do, or has views made anew."""
