"""What several commands use: arguments, the admin port, and files and stores read offline."""
