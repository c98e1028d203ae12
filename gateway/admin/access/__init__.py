"""Access to the admin port: connections, authentication, rights and browser sessions."""
