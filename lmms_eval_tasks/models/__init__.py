"""Small models of ours that the host can run: an oracle, a coin, a scripted reply, language-model pairs."""
