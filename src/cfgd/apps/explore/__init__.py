"""The explorer of `cfgd explore`: an interactive page that runs the methods in the browser."""

from cfgd.apps.explore.page import page as page
