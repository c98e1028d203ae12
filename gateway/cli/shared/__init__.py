"""Code that several commands share: arguments, the admin port client, and offline input."""
