"""The vault: the only room that draws private noise or spends budget."""
