"""Verification: the proof that converted messages conform to each version's OpenAPI document.

An **operation** is a method of a path in an OpenAPI document. A **claim** concerns one part of an
operation's messages: every example that conforms to the sender's document must conform to the
recipient's document after the conversion. A **proof** decides a claim by the schemas, or tests it
on generated examples. A **finding** is one wrong field, with the smallest failing example. A
**sample** is a live response that is validated in the background.
"""
