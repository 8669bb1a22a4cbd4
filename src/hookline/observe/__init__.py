"""See what an agent did: trace, why, replay, backtest, inspector, and the hook reference."""
