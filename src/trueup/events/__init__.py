"""Where changes come from: signatures, webhooks and their routes."""
