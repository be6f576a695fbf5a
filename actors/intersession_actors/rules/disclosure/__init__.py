"""What of a text may be shown, in tools and views: secrets are hidden and long texts are cut."""
