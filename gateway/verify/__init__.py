"""Verification: the proof that conversions keep what each version's OpenAPI document promises.

An **operation** is a method of a path in a version's OpenAPI document. A **claim** is about one
part of its messages, such as the response 200: each example that the sender's document allows must,
once converted, fit the recipient's document. A **proof** is a claim tried on many generated
examples; a **finding** is one field that is wrong, with the smallest example. A **hint** is the
change that would mend it. A **sample** is a live converted response, validated in the background.

A gateway that serves loads the OpenAPI code only where its rules ask for samples to be checked.
"""
