"""From a folder of pictures to a network that tells bricks, grass and gravel apart."""
