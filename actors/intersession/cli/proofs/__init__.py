"""Commands for auditors: proofs of a log, and the keys that sign them."""
