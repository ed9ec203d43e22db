"""The documentation: code blocks and their outputs, pictures, prose, and what MkDocs asks for."""
