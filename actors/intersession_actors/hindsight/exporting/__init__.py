"""What of a log other tools read: spans, CloudEvents, messages in the form of model servers, tables."""
