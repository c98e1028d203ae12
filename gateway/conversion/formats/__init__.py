"""The formats of bodies that can be converted: JSON, forms, patches, and streams of documents."""
