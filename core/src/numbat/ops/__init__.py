"""Operators by family: each module holds the forward and the backward function of its operators."""

from numbat.ops.casting import *
from numbat.ops.division import *
from numbat.ops.convolution import *
from numbat.ops.matrix import *
from numbat.ops.pointwise import *
from numbat.ops.reductions import *
from numbat.ops.viewing import *
