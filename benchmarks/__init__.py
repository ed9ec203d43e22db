"""Speed and memory, measured side by side in one run and judged as ratios. `make bench` runs all of them."""
