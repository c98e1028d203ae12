"""The formats of bodies: JSON, forms, patches, and streams of documents."""
