"""Reports: statistics, pictures and pages."""
