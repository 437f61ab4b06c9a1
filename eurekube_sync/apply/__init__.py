"""The writes to both servers, and what each syncer is reported of them."""
