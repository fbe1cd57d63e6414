"""The explorer: one page on which the methods run while points are dragged, as `cfgd explore`."""

from cfgd.apps.explore.page import page as page
