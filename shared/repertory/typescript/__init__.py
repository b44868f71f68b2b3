"""TypeScript for tools: types from their schemas, and methods that call them."""
