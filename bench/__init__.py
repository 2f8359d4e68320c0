"""What cobre_comm takes beside its peers, measured in the same processes.

`cases` says what is measured, `ranks` holds what ranks run, `report` turns results into pages,
`studies` are measurements behind single design decisions.
"""
