"""Reports: pictures, pages, and the folder that holds them."""

from fliptron.report.folder import writable_folder, write_noise, write_report

__all__ = ["writable_folder", "write_noise", "write_report"]
