"""Small tools that views and questions share, and events in words."""
