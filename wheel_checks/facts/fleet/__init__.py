"""Many hosts: ``report`` reads the reports of one, ``hosts`` compares them, ``host_list`` and ``topology`` name and
locate them, ``rates`` finds slow ones, ``nodes`` compares them with the user's requirements.
"""
