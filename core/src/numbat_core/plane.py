"""What the core engine tells the gates about itself."""

from numbat_gates.planes import Plane

PLANE = Plane(name="core", package="numbat", registry="core", distribution="numbat-core")
