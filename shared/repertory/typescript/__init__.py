"""TypeScript for tools: types made from their schemas and methods that call them."""
