"""Which native kernels there are, and for which calls: pure Python, no numba.

Importing the package registers every family.
"""

from edgewise.kernels.catalog import activation as activation
from edgewise.kernels.catalog import conv as conv
from edgewise.kernels.catalog import copy as copy
from edgewise.kernels.catalog import elementwise as elementwise
from edgewise.kernels.catalog import index as index
from edgewise.kernels.catalog import matmul as matmul
from edgewise.kernels.catalog import norm as norm
from edgewise.kernels.catalog import pack as pack
from edgewise.kernels.catalog import pool as pool
from edgewise.kernels.catalog import quantize as quantize
from edgewise.kernels.catalog import recurrent as recurrent
from edgewise.kernels.catalog import reduce as reduce
