"""What pages consist of: the style sheets and scripts that an ``html`` report carries within it, and a graphic."""
