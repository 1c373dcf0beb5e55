"""terminal/SqliteIndexPlan: choose indexes for a workload under a size limit."""
