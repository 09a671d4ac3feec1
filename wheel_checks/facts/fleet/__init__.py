"""Many hosts: ``report`` has what is known of one, ``hosts`` what is compared, ``host_list`` and ``topology`` what they
are called and where they are, ``rates`` who is slow, ``nodes`` what they were expected to be.
"""
