"""Skill files of contracts 1 and 2: NeuroScript procedures in a folder ``library``."""

from pathlib import Path

from tests.support import builders

_PROCEDURE = """DEFINE PROCEDURE {name}({inputs})
COMMENT:
    PURPOSE: {purpose}
    INPUTS: {inputs}
    OUTPUT: {output}
    ALGORITHM: {algorithm}
ENDCOMMENT
RETURN {name}
END
"""

AREA = _PROCEDURE.format(
    name="CalculateArea",
    inputs="width, height",
    purpose="Calculates the area of a rectangle.",
    output="number (the calculated area)",
    algorithm="Multiply width by height.",
)
ADD = _PROCEDURE.format(
    name="Add",
    inputs="a, b",
    purpose="Adds two numbers and returns their sum.",
    output="number (the sum)",
    algorithm="Return a plus b.",
)
VOLUME = _PROCEDURE.format(
    name="CalculateVolume",
    inputs="width, height, depth",
    purpose="Calculates the volume of a box with rectangular sides.",
    output="number (the calculated volume)",
    algorithm="Multiply width by height and depth.",
)

AREA_FILE = "library/geometry/area.ns.txt"
ADD_FILE = "library/math_helpers.ns.txt"
VOLUME_FILE = "library/geometry/volume.ns.txt"


def write(folder: Path, place: str, text: str) -> str:
    """Write a file and its parent folders; returns ``place`` unchanged."""
    builders.write(folder / place, text)
    return place


def make_library(folder: Path) -> Path:
    """Fill a folder with three skill files and a document."""
    write(folder, "README.md", "# Library\n\nProcedures for everybody.\n")
    write(folder, AREA_FILE, AREA)
    write(folder, ADD_FILE, ADD)
    write(folder, VOLUME_FILE, VOLUME)
    return folder
