"""What every owner of a stream shares: commands and their outcomes, what is handed of the world, and the owner itself."""
