"""The names of clients and their proof, and who may use the admin port."""
