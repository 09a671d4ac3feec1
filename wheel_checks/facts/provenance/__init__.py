"""Where files come from: what several indexes offer, and what was judged before."""
