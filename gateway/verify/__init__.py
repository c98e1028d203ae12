"""Verification: the proof that conversions keep what each version's OpenAPI document promises.

A **document** is what a version publishes of itself. A **claim** is one body that must arrive in
another version as that version's document says: the response to an operation, on its way to the
older version, or the body of a request on its way to the newer one. A **proof** is many generated
examples of a claim, converted and validated; a **finding** is what is wrong, at one field.

Nothing here is loaded by a gateway that serves, unless its rules ask for samples to be checked.
"""
