# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "torch==2.11.0",
#   "rich",
# ]
# ///
print("torch==2.11.0")
