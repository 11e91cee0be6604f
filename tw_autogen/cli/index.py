"""`tw-autogen index`: make an index of a folder of texts, for the role `document_retriever`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from tw_autogen.cli.options import COMMON_OPTIONS, Options, with_options
from tw_autogen.cli.trust_prompt import read_settings_and_warn
from tw_autogen.cli.user_path import UserPath
from tw_autogen.model import EmbeddingSettings, ModelSettings, resolve_ranker
from tw_autogen.plural import pluralize
from tw_autogen.recall import DocumentIndex
from tw_autogen.session import distrusted_folder
from tw_autogen.text_escaping import visible_line

_GLOBS = " ".join(DocumentIndex.GLOBS)


@with_options(COMMON_OPTIONS)
@click.command("index")
@click.argument("folder", type=UserPath(path_type=Path))
@click.option("--out", type=UserPath(dir_okay=False, path_type=Path), help="The file; default: FOLDER/tw-index.json.")
@click.option("--glob", "globs", multiple=True, metavar="GLOB", help=f"Which files; default: {_GLOBS}.")
@click.option("--chars", default=1000, show_default=True, type=click.IntRange(100), help="How long a passage may be.")
def command(folder: Path, out: Path | None, globs: tuple[str, ...], chars: int, **shared: Any) -> None:
    """Make an index of the texts in FOLDER, for the role document_retriever.

    Without settings `embedding.…` passages are found by their words, and nothing is asked; with them, embeddings are
    made now and kept in the cache.
    """
    options = Options(**shared)
    settings = read_settings_and_warn(options)
    embedding, model = settings.read("embedding", EmbeddingSettings), settings.read("model", ModelSettings)
    ranker = resolve_ranker(embedding, model, distrusted=distrusted_folder(settings))
    index = DocumentIndex.build(folder, globs=globs or DocumentIndex.GLOBS, passage_chars=chars)
    index.prepare(ranker)
    file = visible_line(str(index.write(out)))
    for line in index.skipped:
        click.echo(f"left out: {visible_line(line)}", err=True)
    passages, files = len(index.passages), len(index.files)
    made = f"{pluralize(passages, 'passage')} of {pluralize(files, 'file')}"
    click.echo(f"{made} {'is' if passages == 1 else 'are'} in {file}")
    click.echo(f"Use it: tw-autogen --roles document_retriever --set role.document_retriever.index={shlex.quote(file)}")
