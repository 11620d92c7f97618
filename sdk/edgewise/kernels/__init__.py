"""What the kernels are (``catalog``) and how they are made (``native``)."""
