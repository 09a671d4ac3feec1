"""The application behind ``wheelproof diff``: what two wheels, or two sets of wheels, have that the other has not."""
