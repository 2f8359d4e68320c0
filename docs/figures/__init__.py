"""Figures of the site: each module draws one, as SVG that follows the colours of its page."""
