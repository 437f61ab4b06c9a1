"""What every test may ask for, and the search for secrets in what all of them show."""

pytest_plugins = ["tests.planted"]
