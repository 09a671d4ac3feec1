"""Renderers: each module has ``render(report, stream)``. A renderer never decides."""
