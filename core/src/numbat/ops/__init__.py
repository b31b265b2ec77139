"""Operators by family: each module holds the forward and the backward function of its operators."""

from numbat.ops.activations import *
from numbat.ops.bitwise import *
from numbat.ops.casting import *
from numbat.ops.comparison import *
from numbat.ops.convolution import *
from numbat.ops.division import *
from numbat.ops.exponential import *
from numbat.ops.extremes import *
from numbat.ops.indexing import *
from numbat.ops.joining import *
from numbat.ops.matrix import *
from numbat.ops.pointwise import *
from numbat.ops.pooling import *
from numbat.ops.rearranging import *
from numbat.ops.rectifiers import *
from numbat.ops.reductions import *
from numbat.ops.rounding import *
from numbat.ops.sampling import *
from numbat.ops.selecting import *
from numbat.ops.shaping import *
from numbat.ops.softmax import *
from numbat.ops.trigonometric import *
from numbat.ops.viewing import *
