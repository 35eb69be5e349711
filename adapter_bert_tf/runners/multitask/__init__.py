"""Several tasks that are trained together, whatever their type."""
