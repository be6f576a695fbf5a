"""Files that a spawn hands to its child: checked, staged and claimed in its workspace."""
