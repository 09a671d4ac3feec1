"""Will a set of requirements work on the target: are its packages what is wanted, and do they fit?"""
