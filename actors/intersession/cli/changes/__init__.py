"""Commands by which the operator changes what sessions do, or has views made anew: one module each, loaded when it is called."""
