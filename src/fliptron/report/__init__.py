"""Reports: pictures, pages, and the folder that holds them."""

from fliptron.report.folder import open_folder, write_report

__all__ = ["open_folder", "write_report"]
