"""What is done with a schema now and then: dumped for a backup, and cleared of what was erased."""
