"""THE MENU: legal shapes, evaluated at once, each rejection with its reason."""
