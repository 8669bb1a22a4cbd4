"""Skills as people publish them load unchanged; what is not one is told with its reason."""

import pytest

PDF = """---
name: pdf-forms
description: |
  Extract text and tables from PDF files, fill forms, merge documents.

  Use when the user mentions PDFs, forms or document extraction.
license: Proprietary. LICENSE.txt has complete terms
compatibility: Requires Python 3.11+, qpdf and access to the internet
metadata:
  author: example-org
  version: "1.0"
  openclaw:
    requires:
      bins: [qpdf, pdftotext]
    install:
      - kind: apt
        package: qpdf
allowed-tools: Bash(qpdf:*) Bash(git add:*) Read
---

# PDF forms

---

1. Run `scripts/fields.py`.
"""

FOLDED = """---
name: release-notes
description: >-
  Write release notes from merged pull requests.
  Use before a release.
allowed-tools:
  - Read
  - Bash(git log:*)
version: 2.1.0
user-invocable: true
argument-hint: "[tag]"
---
Write them.
"""

WRAPPED = """---
name: wrapped
description: Plain text that goes on
  over several lines, as editors
  wrap it.
---
"""


class TestRealSkillsLoadUnchanged:
    def test_block_text_nested_metadata_and_a_rule_in_the_body(self, write, discover):
        write("pdf-forms", PDF)
        skill = discover().get("pdf-forms")
        assert skill.description.startswith("Extract text and tables")
        assert skill.description.endswith("document extraction.")
        assert skill.license.startswith("Proprietary")
        assert skill.compatibility.startswith("Requires Python")
        assert skill.metadata["openclaw"]["install"] == [{"kind": "apt", "package": "qpdf"}]
        assert skill.allowed_tools == ("Bash(qpdf:*)", "Bash(git add:*)", "Read")
        assert skill.body == "# PDF forms\n\n---\n\n1. Run `scripts/fields.py`."

    def test_folded_text_a_list_of_tools_and_keys_that_the_format_does_not_know(self, write, discover):
        write("release-notes", FOLDED)
        skill = discover().get("release-notes")
        assert skill.description == (
            "Write release notes from merged pull requests. Use before a release."
        )
        assert skill.allowed_tools == ("Read", "Bash(git log:*)")
        assert skill.extra == {"version": "2.1.0", "user-invocable": True, "argument-hint": "[tag]"}

    @pytest.mark.parametrize(
        "change",
        [
            lambda text: text.replace("\n", "\r\n").encode(),
            lambda text: b"\xef\xbb\xbf" + text.encode(),
            lambda text: text.rstrip("\n").encode(),
            lambda text: text.replace("---\n", "---  \n").encode(),
        ],
        ids=["windows", "bom", "no-last-newline", "spaces-behind-the-rule"],
    )
    def test_however_the_file_was_saved(self, write, discover, change):
        write("release-notes", change(FOLDED))
        skills = discover()
        assert not skills.problems
        assert skills.get("release-notes").body == "Write them."

    def test_wrapped_plain_text_and_no_body(self, write, discover):
        write("wrapped", WRAPPED.rstrip("\n"))
        skill = discover().get("wrapped")
        assert skill.description == "Plain text that goes on over several lines, as editors wrap it."
        assert skill.body == ""

    @pytest.mark.parametrize(
        ("line", "description"),
        [
            ("Two axes: standards, and what's asked.", "Two axes: standards, and what's asked."),
            ("[beta] Draws: charts", "[beta] Draws: charts"),
            ("d\nargument-hint: [issue] [priority]", "d"),
            ("d\nreviewed: 2024-99-99", "d"),
            ("@mentions are read", "@mentions are read"),
            ("Goes on: here\n  and: there", "Goes on: here and: there"),
        ],
    )
    def test_a_description_that_needed_quotes(self, write, discover, line, description):
        write("loose", f"---\nname: loose\ndescription: {line}\nmetadata:\n  a: b\n---\nText")
        skill = discover().get("loose")
        assert skill.description == description
        assert skill.metadata == {"a": "b"}

    def test_tools_with_commas(self, write, discover):
        write(
            "commas", "---\nname: commas\ndescription: d\nallowed-tools: Read, Bash(git:*),Write\n---"
        )
        assert discover().get("commas").allowed_tools == ("Read", "Bash(git:*)", "Write")

    def test_values_that_name_each_other_are_refused(self, write, discover):
        levels = "".join(f"  l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]\n" for n in range(1, 12))
        write("deep", f"---\nname: deep\ndescription: d\nmetadata:\n  l0: &l0 [x]\n{levels}---\nText")
        with pytest.raises(Exception, match="unknown skill"):
            discover().get("deep")


LONG = "x" * 65

DEPARTURES = [
    ("a", "description: d", "a", "name is missing; the skill is called 'a'"),
    ("a", "name: 12\ndescription: d", "12", "name '12' differs from the name of its folder, 'a'"),
    ("a", "name: b\ndescription: d", "b", "differs from the name of its folder, 'a'"),
    ("A", "name: A\ndescription: d", "A", "should have only lower-case letters"),
    ("a--b", "name: a--b\ndescription: d", "a--b", "single hyphens"),
    ("my-skill", "name: My Skill\ndescription: d", "My Skill", "should have only lower-case"),
    (LONG, f"name: {LONG}\ndescription: d", LONG, "name has 65 characters; the format allows 64"),
    ("a", f"name: a\ndescription: {'y' * 1025}", "a", "description has 1,025 characters"),
    ("a", "name: a", "a", "description is missing; the first paragraph takes its place"),
]


@pytest.mark.parametrize(("folder", "fields", "name", "warning"), DEPARTURES)
def test_a_published_skill_that_departs_from_the_format_loads_with_a_warning(
    write, discover, folder, fields, name, warning
):
    write(folder, f"---\n{fields}\n---\n# Title\n\nWhat it does.\n")
    skills = discover()
    assert skills.problems == []
    assert any(warning in each for each in skills.get(name).warnings)
    assert "What it does." in skills.load(name)


class TestWhatIsLeftOut:
    @pytest.mark.parametrize(
        ("folder", "text", "reason"),
        [
            ("a", "name: a\n", "the first line must be `---`"),
            ("a", "", "the first line must be `---`"),
            ("a", "---\nname: a\ndescription: d\n", "a line `---` is missing"),
            ("a", "---\nname: [a]\ndescription: d\n---\n", "name must be text, not a list"),
            ("a", '---\nname: "a\\e[2J"\ndescription: d\n---\n', "without control characters"),
            ("a", "---\nname: ''\ndescription: d\n---\n", "must be a word"),
            ("a", "---\nname: a\n---\n# Heading\n", "description is missing"),
            ("a", "---\nname: a\ndescription: '  '\n---\n", "description is missing"),
            ("a", "---\nname: a\ndescription: [x]\n---\n", "description must be text, not a list"),
            ("a", "---\nname: a\ndescription: d\nmetadata: x\n---\n", "metadata must be a mapping"),
            ("a", "---\nname: a\ndescription: d\nallowed-tools: 3\n---\n", "allowed-tools must be"),
            ("a", "---\n- a\n---\n", "must be a list of `key: value` lines"),
            ("a", "---\nname: a\nmetadata: {\n---\n", "is not YAML"),
            ("a", "---\nname: a\nmetadata: 2024-99-99\n---\n", "is not YAML"),
            ("a", "---\nname: a\nmetadata: " + "[" * 5000 + "\n---\n", "nested more than 32"),
            ("a", "---\nname: a\nmetadata: " + "{a: " * 5000 + "\n---\n", "nested more than 32"),
            ("a", "---\n" + "- " * 5000 + "\n---\n", "nested more than 32"),
            ("a", "---\nname: !!python/object:os.system a\n---\n", "is not YAML"),
            ("a", f"---\nname: a\nx: {'z' * 40_000}\n---\n", "more than 32,000 characters"),
            ("a", b"---\nname: a\ndescription: \xff\xfe\n---\n", "is not UTF-8 text"),
            ("a", b"---\nname: a\ndescription: d\n---\n\0", "NUL"),
            ("a", b"-" * 1_000_001, "1,000,001 bytes"),
        ],
    )
    def test_the_reason_is_told_and_the_rest_loads(self, write, discover, folder, text, reason):
        write(folder, text)
        write("good")
        skills = discover()
        assert [skill.name for skill in skills.list()] == ["good"]
        [problem] = skills.problems
        assert reason in str(problem)
        assert problem.place.endswith(f"{folder}/SKILL.md")
