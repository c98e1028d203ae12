"""Who may ask the admin port: its guard, the rights of who asks, and the login."""
