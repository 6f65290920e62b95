"""What one does on the page: ask, try and make a change, follow an alert to its proof."""

import re

import pytest
from playwright.sync_api import expect

from support.serve.page_visitor import Visitor


@pytest.mark.smoke
def test_the_console_answers_goals_and_sql(visitor: Visitor) -> None:
    page = visitor.open("/console")
    page.fill("#question", 'link("centre", y)')
    page.press("#question", "Control+Enter")
    expect(page.locator("tbody tr")).to_have_count(page.locator("tbody tr").count())
    expect(page.locator("tbody")).to_contain_text("zoo")
    assert "q=link" in page.url
    page.locator("tbody a.row-link", has_text="zoo").click()
    expect(page.locator("#drawer")).to_contain_text('link("centre", "zoo")')
    expect(page.locator("#drawer [role=tree]")).to_be_visible()
    page.fill("#question", "SELECT COUNT(*) AS n FROM stop")
    page.press("#question", "Control+Enter")
    expect(page.locator("tbody td")).to_have_text("7")
    page.fill("#question", 'link("airport", "zoo")')
    page.press("#question", "Control+Enter")
    expect(page.locator(".verdict-large")).to_have_text("yes")


def test_an_error_of_the_console_has_its_cure(visitor: Visitor) -> None:
    visitor.is_offline_expected = True
    page = visitor.open("/console?q=lnik(x, y)")
    expect(page.locator(".error")).to_contain_text("There is no relation `lnik`")
    expect(page.locator(".error")).to_contain_text("did you mean `link`?")
    visitor.is_offline_expected = False


def test_a_change_is_tried_out_then_made_then_taken_back(visitor: Visitor) -> None:
    page = visitor.open("/change")
    page.select_option("[data-choose]", "direct_link")
    page.locator(".fields input").nth(0).fill("zoo")
    page.locator(".fields input").nth(1).fill("tower")
    page.click("[data-add='+']")
    expect(page.locator("#changes")).to_have_value('+direct_link("zoo", "tower")\n')
    page.press("#changes", "Control+Enter")
    outcome = page.locator("#outcome")
    expect(outcome).to_contain_text("A dry run: nothing was changed")
    expect(outcome).to_contain_text('link("airport", "tower")')
    page.get_by_role("button", name="commit", exact=True).click()
    expect(outcome).to_contain_text(re.compile(r"commit \d+"))
    expect(outcome).to_contain_text('link("airport", "tower")')
    page.fill("#changes", '-direct_link("zoo", "tower")')
    page.get_by_role("button", name="commit", exact=True).click()
    expect(outcome.locator("li.went").first).to_be_visible()


def test_a_change_that_is_refused_says_why(visitor: Visitor) -> None:
    visitor.is_offline_expected = True  # the browser notes a status that is not 200
    page = visitor.open("/change")
    outcome = page.locator("#outcome")
    page.fill("#changes", '+direct_link("zoo", "zoo")')
    page.get_by_role("button", name="try it").click()
    expect(outcome).to_contain_text("a link from zoo to itself")
    page.get_by_role("button", name="commit", exact=True).click()
    expect(outcome).to_contain_text("Nothing was changed")
    page.fill("#changes", "+direct_link(x, 3)\nnonsense")
    page.get_by_role("button", name="try it").click()
    expect(outcome).to_contain_text("Line 1 is not a change: a tuple has values only.")
    expect(outcome).to_contain_text("Line 2 is not a change")
    visitor.is_offline_expected = False


def test_an_alert_opens_its_proof(visitor: Visitor) -> None:
    page = visitor.open("/alerts")
    line = page.locator(".alert-line", has_text="to zoo").first
    expect(line).to_contain_text("no way from the airport to zoo")
    line.locator("a.why").click()
    expect(page.locator("#drawer")).to_contain_text('lost("zoo")')
    expect(page.locator("#drawer [role=treeitem]").first).to_be_visible()
    expect(page.locator(".as-of")).to_contain_text("commit 3")


def test_outputs_show_how_far_they_are(visitor: Visitor) -> None:
    row = visitor.open("/alerts").locator("tr", has_text="reach").first
    number = re.compile(r"^\d+$")  # the server brings tables forward when it likes
    expect(row.locator("td")).to_have_text(["reach", "delta", number, number, ""])


def test_a_commit_shows_its_plan_times_and_changes(visitor: Visitor) -> None:
    page = visitor.open("/commits")
    page.locator("a.number", has_text=re.compile("^3$")).click()
    expect(page.locator("h1")).to_have_text("Commit 3")
    picture = page.locator("svg.waterfall")
    expect(picture.locator("text.name")).to_have_text(["link", "cut_off", "reach"])
    expect(picture).to_contain_text("ranked")
    page.locator("summary").click()
    expect(page.locator("details table")).to_contain_text("actual")
    expect(page.locator(".changed", has_text="direct_link")).to_contain_text("−1")
    page.locator(".changed a.value", has_text='cut_off("zoo")').click()
    expect(page.locator("#drawer")).to_contain_text("commit 3")
    expect(page.locator("#drawer")).to_contain_text('direct_link("harbour", "zoo")')


def test_documents_show_verdicts_and_quarantine_what_is_wrong(visitor: Visitor) -> None:
    page = visitor.open("/documents")
    rows = page.locator("tbody tr")
    expect(rows.filter(has_text="north")).to_contain_text("true")
    expect(rows.filter(has_text="south")).to_contain_text("may become true")
    expect(rows.filter(has_text="south")).to_contain_text("!carrier")
    expect(rows.filter(has_text="west")).to_contain_text("false for ever")
    page.goto(visitor.server.url + "/quarantine")
    expect(page.locator("tbody").first).to_contain_text("museum,2020-13-45,1,never")
    expect(page.locator("tbody").first).to_contain_text("is not a date")


def test_a_document_is_live(visitor: Visitor) -> None:
    page = visitor.open("/documents")
    page.get_by_role("link", name="south").click()
    expect(page.locator("h1")).to_have_text("south")
    known = page.locator("section.document")
    expect(known.locator(".useful li")).to_have_text(
        [re.compile("!bank.*since 2026-03-01T07:30:00"), re.compile("!carrier.*T08:00:00")]
    )
    other = visitor.open("/change")
    answer = r'document_answer("south", "done", "[\"o7\"]")'
    for sign, count in (("+", 1), ("-", 0)):
        other.fill("#changes", sign + answer)
        other.get_by_role("button", name="commit", exact=True).click()
        expect(known.locator("dd .value")).to_have_count(count)
    visitor.is_offline_expected = True  # the browser notes the status
    page.goto(visitor.server.url + "/documents/south?at=1")
    expect(page.locator("main")).to_contain_text("as of commit 1")
    visitor.is_offline_expected = False


def test_advice_for_a_log_of_sql(visitor: Visitor) -> None:
    page = visitor.open("/advice")
    join = "FROM direct_link a JOIN direct_link b ON a.dst = b.src"
    page.fill(
        "#log", f"SELECT DISTINCT a.src {join};\nSELECT a.src, COUNT(*) AS n {join} GROUP BY 1;"
    )
    page.keyboard.press("Control+Enter")
    found = page.locator("#log-advice")
    expect(found.locator("h2", has_text="sql_1")).to_be_visible()
    expect(found).to_contain_text("SELECT DISTINCT a.src")
    page.fill("#log", "SELECT nothing FROM nowhere;")
    page.keyboard.press("Control+Enter")
    expect(found).to_contain_text("nowhere")


def test_advice_goes_by_what_was_asked(visitor: Visitor) -> None:
    page = visitor.open('/console?q=link("airport", y)')
    expect(page.locator("tbody")).to_contain_text("zoo")
    page.goto(visitor.server.url + "/advice")
    expect(page.locator("main")).to_contain_text("link")


def test_a_column_is_followed_up_and_down(visitor: Visitor) -> None:
    page = visitor.open("/relations/link?show=lineage&column=dst")
    row = page.locator("table.lineage tr.chosen")
    expect(row.locator("th")).to_have_text("dst")
    row.locator("a", has_text="direct_link.").first.click()
    expect(page.locator("h1")).to_have_text("direct_link")
    row = page.locator("table.lineage tr.chosen")
    expect(row).to_contain_text("link.")
    row.locator("a", has_text="link.").first.click()
    expect(page.locator("h1")).to_have_text("link")
