"""Shared fixtures. Workers of pytest-xdist share the cores, so each takes one thread."""

import os

import torch

if "PYTEST_XDIST_WORKER" in os.environ:
    torch.set_num_threads(1)
