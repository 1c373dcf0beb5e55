"""Sandboxes as containers of a Docker engine (or Podman's Docker API)."""

from .backend import DockerBackend, answers

__all__ = ["DockerBackend", "answers"]
