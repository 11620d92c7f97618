"""Secure aggregation: a server learns the sum of what parties send, and no summand.

The protocol is that of Bonawitz et al. (2017), "Practical Secure Aggregation for
Privacy-Preserving Machine Learning", figure 4, for a server that keeps to it (so
without the consistency check of its round 3). Choose a threshold above half of the
parties: then even a server that names different survivors to different parties cannot
collect both kinds of shares of one party.
"""

from edgewise_federated.secure.collector import Collector
from edgewise_federated.secure.fixed import Fixed
from edgewise_federated.secure.messages import Keys, Reveal, Share
from edgewise_federated.secure.party import Party
from edgewise_federated.secure.round import Round, aggregated

__all__ = [
    "Collector",
    "Fixed",
    "Keys",
    "Party",
    "Reveal",
    "Round",
    "Share",
    "aggregated",
]
