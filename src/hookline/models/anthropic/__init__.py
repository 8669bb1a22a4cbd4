"""Models of Anthropic, over the Messages API: `provider` names them, `client` talks to them."""
