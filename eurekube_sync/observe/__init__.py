"""What is registered: the lists of both servers, what a pass has to read, and what this process
remembers."""
