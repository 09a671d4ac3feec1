# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "rich",
# ]
# ///
print("torch==2.11.0")
