"""The same run on many processes and machines: engines and graders as Ray actors, the loop in one driver.

`placement.open_cluster` gives an engine and graders that the loop cannot tell from the local ones. Ray is imported only
where it is used, so that nobody needs it who does not ask for a cluster.
"""
