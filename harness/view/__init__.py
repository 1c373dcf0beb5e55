"""Looking at runs: a page over results folders, served on this machine or written as a static site.

| module | what it knows |
|---|---|
| `library` | which runs there are, and what is wrong with those that cannot be read |
| `index` | a run as the rows of a table |
| `detail`, `pictures` | an episode as its page shows it |
| `site` | what lies under which address; the one list for the server and the export |
| `server`, `export` | the two ways to give it out |
| `page/` | the front end's sources; `static/` is what they build, and what is shipped |

What a transcript holds is data: it travels as JSON and is shown as text; nothing of it is ever run, fetched or
followed.
"""

from .export import export
from .library import Library
from .server import serving
from .site import Site

__all__ = ["Library", "Site", "export", "serving"]
