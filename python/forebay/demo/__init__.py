"""`forebay demo`: the main job on embedded parts."""
