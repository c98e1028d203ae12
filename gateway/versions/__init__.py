"""Labels and their order, how a version is read, and its selection."""
