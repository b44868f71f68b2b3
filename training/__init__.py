"""Train the encoder of tools and skills; see README.md."""
