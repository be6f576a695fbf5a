"""Tools of an agent's own: described for its model, checked, called, and recorded as the session tools are."""
