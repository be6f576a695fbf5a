"""What every package needs: ids, session keys, errors, plain JSON, times."""
