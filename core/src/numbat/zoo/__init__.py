"""Models built of the engine's modules: GPT-2, ResNet, UNet 3D, YOLOv8."""

from numbat.zoo.gpt2 import GPT2, GPT2Config
from numbat.zoo.resnet import BasicBlock, ResNet, resnet18, resnet34
from numbat.zoo.unet3d import UNet3D
from numbat.zoo.yolov8 import YOLOv8

__all__ = [
    "GPT2", "BasicBlock", "GPT2Config", "ResNet", "UNet3D", "YOLOv8", "resnet18", "resnet34",
]  # fmt: skip
