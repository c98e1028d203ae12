"""The operations of a conversion, one a module: each with its inverse and its parameter form."""
