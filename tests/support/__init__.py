"""What tests share: helpers, never tests. Folders below are of one subject each."""
