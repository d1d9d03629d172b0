"""The README's examples run as they stand, and what it points to exists."""

import doctest
import re
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_examples_run(capsys, tmp_path, monkeypatch):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    assert len(blocks) == 3
    monkeypatch.chdir(tmp_path)
    write_tables()
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
    assert set(names["labels"]) == {"a", "b"}
    assert (tmp_path / "model" / "model.safetensors").is_file()
    assert float(capsys.readouterr().out) > 0.9
    assert names["cleaned"].shape == (1797, 64)


def write_tables():
    """Two rings of nodes, one of a kind, as the tables that the README speaks of."""
    kinds = ["ab"[node // 20] for node in range(40)]
    rows = [f"{node},{ord(kind) + node % 3},{kind}" for node, kind in enumerate(kinds)]
    Path("nodes.csv").write_text("\n".join(["id,size,kind", *rows]))
    edges = [f"{node},{node - node % 20 + (node + 1) % 20}" for node in range(40)]
    Path("edges.csv").write_text("\n".join(["source,target", *edges]))


def test_examples_of_the_docs_give_what_they_say():
    tried = [
        doctest.testfile(str(path), module_relative=False)
        for path in sorted(README.parent.glob("docs/*.md"))
        if ">>> " in path.read_text()
    ]
    assert tried
    assert not any(found.failed for found in tried)


def test_links_to_headings_lead_somewhere():
    for path in (README, *README.parent.glob("docs/*.md")):
        for target, place in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", path.read_text()):
            page = path.parent / target if target else path
            headings = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert place in slugs, f"{path.name} points to {target}#{place}"


def test_links_lead_somewhere():
    for path in (README, *README.parent.glob("docs/*.md"), README.parent / "CONTRIBUTING.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
            if "://" not in target:
                assert (path.parent / target).exists(), f"{path.name} points to {target}"
