"""Bundles: selections of a log as files that prove themselves, in an archive that the one file beside them checks (BUNDLE)."""
