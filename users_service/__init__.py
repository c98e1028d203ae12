"""Creates users from JSON bodies and returns them by id, as one aiohttp application."""
