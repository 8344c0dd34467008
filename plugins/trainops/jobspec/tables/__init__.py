"""What Google's pages say, as data: machines, accelerators, scale tiers, images. Each table names its source."""
