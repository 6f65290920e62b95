"""Why a tuple is there, why it is not, why it came or went: proofs, absences, causes.

`nodes` and `proof` have what answers are made of, `wording` how they read. `why` finds a proof:
`descent` finds one by ranks, `cone` the tuples among which all lowest proofs are, `rounds` the
canonical one; `instances` asks the engine. Nothing here changes a relation: what is asked is in
working relations, which are dropped again.
"""
