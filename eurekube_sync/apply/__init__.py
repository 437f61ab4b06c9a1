"""The writes to both servers, and what each syncer is told of them."""
