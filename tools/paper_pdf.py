"""A filled text as a PDF, by pandoc and typst; both are in requirements/paper.txt.

    build/paper-tools/bin/python tools/paper_pdf.py build/drift/drift.md build/drift.pdf

This runs in a separate environment, without driftbandit."""

import json
import os
import sys
from pathlib import Path

STYLE = """
#set document(date: none)
#set par(justify: true)
#set figure(placement: auto)
#set table(inset: 3.2pt)
#show table: set text(size: 8pt)
#show table: set par(justify: false)
#show figure.caption: set text(size: 8.5pt)
#show figure.caption: set par(justify: false)
#show figure.where(kind: table): set figure.caption(position: top)
#show heading: set block(above: 1.3em, below: 0.7em)
#show heading.where(level: 1): set text(size: 12pt)
#show heading.where(level: 2): set text(size: 10.5pt)
#show raw: set text(size: 8.5pt)
"""
SETTINGS = {
    "papersize": "a4",
    "margin": {"x": "2.1cm", "y": "1.9cm"},
    "fontsize": "10pt",
    "mainfont": "Libertinus Serif",
    "section-numbering": "1.1",
}


def main(source: Path, target: Path) -> None:
    """Convert in the folder of the source, where its figures are."""
    import pypandoc
    import typst

    target = target.absolute()
    os.chdir(source.parent)
    Path("style.typ").write_text(STYLE, encoding="utf-8")
    Path("settings.json").write_text(json.dumps(SETTINGS), encoding="utf-8")  # JSON is YAML too
    more = ["--standalone", "--columns=1000", "--include-in-header=style.typ", "--metadata-file=settings.json"]
    middle = source.with_suffix(".typ").name
    pypandoc.convert_file(source.name, "typst", format="markdown", outputfile=middle, extra_args=more)
    typst.compile(middle, output=str(target))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
