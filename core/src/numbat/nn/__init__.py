"""Modules from which models are built, in PyTorch's shape."""

from numbat.nn import functional as functional
from numbat.nn import init as init
from numbat.nn import utils as utils
from numbat.nn.activation import *
from numbat.nn.adaptive import *
from numbat.nn.attention import *
from numbat.nn.containers import *
from numbat.nn.convolution import *
from numbat.nn.distance import *
from numbat.nn.dropout import *
from numbat.nn.embedding import *
from numbat.nn.linear import *
from numbat.nn.loss import *
from numbat.nn.module import *
from numbat.nn.normalisation import *
from numbat.nn.padding import *
from numbat.nn.parameter import *
from numbat.nn.pooling import *
from numbat.nn.recurrent import *
from numbat.nn.transformer import *
from numbat.nn.upsampling import *
