"""What may be shown of a text, for tools and views: secrets are hidden and long texts are cut."""
