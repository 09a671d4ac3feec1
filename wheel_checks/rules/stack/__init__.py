"""Will a set of requirements work on the target: are its packages the wanted ones, and compatible?"""
