"""The kinds of changes, one module each: the model, and the steps that it compiles to."""
