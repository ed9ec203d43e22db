"""The collector as a service: HTTP over `kveil.collect`. A door: nothing imports it but the command line."""
