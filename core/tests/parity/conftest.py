"""Comparisons with PyTorch: collected where it is installed, and nowhere else."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

collect_ignore_glob = [] if find_spec("torch") else ["*.py"]
