"""What a user asks for, read and checked: targets, requirements, conventions, limits, and the plan that comes of it."""
