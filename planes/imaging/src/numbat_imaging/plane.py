"""What the imaging plane tells the gates about itself."""

from numbat_gates.planes import Plane

PLANE = Plane(name="imaging", package="numbat_imaging", registry="imaging")
