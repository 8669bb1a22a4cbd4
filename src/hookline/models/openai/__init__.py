"""Models behind OpenAI's APIs: `client` for chat completions, `responses` for Responses."""
