"""``wheelproof report merge``: the reports of many hosts as one, differences first.

``inputs`` finds and reads the files, ``documents`` splits files with several JSON documents, ``reading`` turns a report
into facts of a host, ``merging`` joins the hosts, ``overview`` summarises them.
"""
