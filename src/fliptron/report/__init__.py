"""Reports: pictures, pages, and the folder that holds them."""

from fliptron.report.folder import make_folder, writable_folder, write_noise, write_report

__all__ = ["make_folder", "writable_folder", "write_noise", "write_report"]
