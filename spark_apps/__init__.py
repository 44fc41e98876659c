"""The Spark side: what spark-submit runs, and the stitching tasks."""
