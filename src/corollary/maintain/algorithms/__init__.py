"""Maintenance algorithms, one file each; `maintenance` calls them, `choose` chooses among them.

| algorithm | maintains | by |
|---|---|---|
| `recompute` | any stratum | evaluating it in NEW, and the difference with OLD |
| `seminaive` | any stratum | evaluation, and insertion of added tuples |
| `counting` | strata without recursion | derivation counts beside stored tuples |
| `dred` | recursive strata | over-deletion, then rederivation |
| `ranked` | stored recursive strata | ranks beside stored tuples, refuted in one step |
| `pf`, `epf` | stored and virtual strata | propagation, then filtration |
| `aggregates` | aggregated relations | aggregating the touched groups again |
| `autonomous` | any stratum, some changes | the change and the stored view alone |
"""
