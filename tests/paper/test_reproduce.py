import pytest

from driftbandit.cli._main import main


@pytest.mark.long
def test_the_command_writes_a_summary_and_reports_what_it_reused(tmp_path, capsys):
    words = ["reproduce", "fig5", "table1", "--quick", "--parameters", "text", "--out", str(tmp_path / "out")]
    assert main(words) == 0
    assert (tmp_path / "out" / "figures" / "fig5b.pdf").exists()
    said = capsys.readouterr().err  # how far it is goes there; results go to the output
    assert "[3/3]" in said or "[3/4]" in said
    assert main(words) == 0
    again = capsys.readouterr().out
    count = again.split(" chunks")[0].split("reused ")[1]
    assert count.split(" of ")[0] == count.split(" of ")[1]


def test_an_unknown_item_on_the_command_line_is_one_sentence(tmp_path, capsys):
    assert main(["reproduce", "figure3", "--out", str(tmp_path)]) == 2
    assert "There is no item 'figure3'; did you mean fig" in capsys.readouterr().err
