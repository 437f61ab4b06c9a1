"""What a pass or a command found and did, for a person or a machine; and standard output and error."""
