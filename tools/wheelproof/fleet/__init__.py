"""``wheelproof report merge``: the reports of many hosts as one, differences first.

``inputs`` finds and reads the files, ``documents`` splits what contains several JSON documents, ``reading`` turns one
report into what is known of a host, ``merging`` puts the hosts together, ``overview`` tells people.
"""
