"""Products of operands with scales for small blocks: mxfp8, mxfp4, nvfp4. See README.md for formats and figures."""
