"""Commands by which the operator changes what sessions do: one module each, loaded when it is called."""
