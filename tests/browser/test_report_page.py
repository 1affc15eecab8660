# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page of an audit in a real browser: what it shows, how long it takes, and that it does nothing else."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest

from ansible_collections.nodenet.cni.plugins.plugin_utils.report_html import html
from ansible_collections.nodenet.cni.plugins.plugin_utils.report_rows import Audit, visible
from ansible_collections.nodenet.cni.tests.unit import audits

sys.path.insert(0, str(Path(__file__).resolve().parent))

import chromium

if chromium.program() is None:
    pytest.skip("not run: there is no Chromium (Debian package chromium-headless-shell)", allow_module_level=True)

PHONE = {"width": 390, "height": 844}
#: Seconds in which the page of 1,000 hosts with 250 reservations each is open: of processor time, others work here too.
OPEN_S = 2.0


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium.Browser(tmp_path_factory.mktemp("chromium")) as running:
        yield running


@pytest.fixture(scope="module")
def urls(tmp_path_factory):
    """The pages, and one with nothing on it; pictures go there too, or where NODENET_SHOTS says."""
    folder = tmp_path_factory.mktemp("pages")
    made = {}
    for name in ("small", "hostile", "large", "named"):
        document = getattr(audits, name)()
        (folder / f"{name}.html").write_text(html(Audit(document)), encoding="utf-8")
        made[name] = (folder / f"{name}.html").as_uri()
    (folder / "empty.html").write_text("<!DOCTYPE html><title>empty</title>", encoding="utf-8")
    made["empty"] = (folder / "empty.html").as_uri()
    return made


@pytest.fixture
def opened(browser, urls):
    """Open a page by name; afterwards it must have done nothing but show itself."""
    pages = []

    def make(name, **how):
        page = browser.page(**how)
        pages.append((page, urls[name]))
        page.seconds = page.open(urls[name])
        return page

    yield make
    for page, url in pages:
        assert page.misdeeds(url) == []
        page.close()


def text(page, selector):
    return page.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map((one) => one.innerText)")


def column(page, table, index):
    return text(page, f"{table} tbody tr:not([hidden]) > td:nth-child({index})")


def search(page, wanted):
    page.evaluate("query.value = ''; query.focus()")
    page.type(wanted)
    page.until("document.getElementById('search-results').childElementCount > 0")
    time.sleep(0.2)  # the search waits for the end of typing


def click(page, selector):
    page.evaluate(f"document.querySelector({json.dumps(selector)}).click()")


class TestSight:
    """Pictures of every report in every light; that they are no blank and nothing is wider than the screen."""

    @pytest.mark.parametrize("name", ["small", "large", "hostile"])
    @pytest.mark.parametrize("look", ["light", "dark", "phone", "print"])
    def test_pictures(self, opened, tmp_path, name, look):
        how = {"dark": {"dark": True}, "phone": PHONE, "print": {"width": 718, "height": 1000}}
        page = opened(name, **how.get(look, {}))
        click(page, "#pools-table button.link")
        page.until("!!document.querySelector('#pools-table .grid')")
        if look == "print":
            page.call("Emulation.setEmulatedMedia", media="print")
            page.pdf(tmp_path / "report.pdf")
            assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
            assert page.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"
        folder = Path(os.environ.get("NODENET_SHOTS") or tmp_path)
        page.screenshot(folder / f"{name}-{look}.png")
        assert (folder / f"{name}-{look}.png").stat().st_size > 10_000
        assert page.evaluate("document.documentElement.scrollWidth") <= page.evaluate("innerWidth")
        if (name, look) == ("small", "light"):
            wide = "[...document.querySelectorAll('.scroll')].map((one) => one.scrollWidth - one.clientWidth)"
            assert max(page.evaluate(wide)) == 0
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
        assert dark == (look == "dark")

    @pytest.mark.parametrize("dark", [False, True])
    def test_every_text_has_contrast(self, opened, dark):
        page = opened("small", dark=dark)
        click(page, "#pools-table button.link")
        assert json.loads(page.evaluate(CONTRAST)) == []

    def test_names_of_hosts_stay_in_one_piece(self, opened):
        """At 1,200 pixels, with all the columns that a table can have."""
        page = opened("named", width=1200)
        cells = "[...document.querySelectorAll('#pools-table td[data-label=Host] bdi')]"
        assert page.evaluate(f"{cells}.map((one) => one.innerText)") == ["edge-119.fra1.example.net", "n2"]
        assert page.evaluate(f"{cells}.map((one) => one.getClientRects().length)") == [1, 1]
        heights = page.evaluate(f"{cells}.map((one) => one.getBoundingClientRect().height)")
        assert heights[0] == heights[1]

    def test_paper_has_what_is_folded_on_the_screen(self, opened):
        page = opened("small")
        folded = "document.querySelectorAll('details:not([open])').length"
        before = page.evaluate(folded)
        assert before > 0
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.evaluate(folded) == 0
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.evaluate(folded) == before

    def test_a_time_says_in_which_zone(self, opened):
        page = opened("small")
        page.call("Emulation.setTimezoneOverride", timezoneId="Asia/Kolkata")
        page.open(page.evaluate("location.href"))
        (shown,) = text(page, "#taken")
        assert shown.startswith("Jan 15, 2027, 1:30:00")
        assert "PM GMT+5:30" in shown

    def test_without_the_script(self, opened):
        page = opened("small", script=False)
        shown = page.call("DOM.getDocument", depth=-1)
        assert "is held by n1 (" in json.dumps(shown)
        tree = json.dumps(page.call("Accessibility.getFullAXTree"))
        assert "Search, sorting and the maps of addresses need the script" in tree


# texts whose contrast with what lies behind them is below 4.5 to 1 (WCAG 2.2, 1.4.3)
CONTRAST = """
(() => {
  const parts = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (rgb) => rgb.slice(0, 3).map((one) => one / 255).map((one) => one <= 0.04045 ? one / 12.92 :
    ((one + 0.055) / 1.055) ** 2.4).reduce((sum, one, index) => sum + one * [0.2126, 0.7152, 0.0722][index], 0);
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const back = parts(getComputedStyle(node).backgroundColor);
      if (back.length < 4 || back[3] > 0) return back;
    }
    return [255, 255, 255];
  };
  const found = new Set();
  for (const node of document.querySelectorAll("body *")) {
    const own = [...node.childNodes].some((one) => one.nodeType === 3 && one.data.trim());
    if (!own || !node.checkVisibility() || node.matches("script, style, noscript, option")) continue;
    const [a, b] = [light(parts(getComputedStyle(node).color)), light(behind(node))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) found.add(`${node.tagName}.${node.className} ${node.textContent.slice(0, 20)}`);
  }
  return JSON.stringify([...found]);
})()
"""


class TestOpening:
    def test_a_large_fleet_opens_quickly(self, opened):
        pages = {name: [opened(name) for _try in range(3)] for name in ("empty", "large")}
        took = {name: min(one.seconds for one in pages[name]) for name in pages}
        cost = {name: min(one.processor_s() for one in pages[name]) for name in pages}
        print(
            "seconds until the page is there, and of processor time: "
            + ", ".join(f"{name} {took[name]:.3f} {cost[name]:.3f}" for name in pages)
        )
        assert cost["large"] - cost["empty"] < OPEN_S

    def test_only_what_is_opened_is_made(self, opened):
        page = opened("large")
        assert page.evaluate("document.querySelectorAll('*').length") < 8_000
        assert page.evaluate("document.querySelectorAll('.grid').length") == 0
        click(page, "#pools-table button.link")
        assert page.evaluate("document.querySelectorAll('.grid').length") == 2

    def test_search_of_all_addresses_is_quick(self, opened):
        page = opened("large")
        search(page, "vip-500-50")
        assert page.until("document.querySelector('#search-results td').innerText.includes('10.3.232.52')")
        started = time.monotonic()
        search(page, "ffff")
        assert time.monotonic() - started < 2


class TestSearch:
    def test_an_owner(self, opened):
        page = opened("small")
        search(page, "VIP-db")
        assert column(page, "#search-results", 1) == ["10.244.1.4"]
        assert column(page, "#search-results", 2) == ["◆static"]
        assert column(page, "#search-results", 7) == ["n1"]
        assert page.evaluate("location.hash") == "#q=VIP-db"

    @pytest.mark.parametrize("length", [13, 16, 40, 64])
    def test_a_container_by_as_much_of_its_id_as_one_has(self, opened, length):
        page = opened("small")
        search(page, audits.container(5)[:length])
        assert column(page, "#search-results", 1) == ["192.0.2.50"]
        assert column(page, "#search-results", 7) == ["n2"]

    @pytest.mark.parametrize(
        "spelling", ["2001:db8::a", "2001:DB8:0:0:0::a", "2001:0db8:0000::000A", "2001:db8::0.0.0.10"]
    )
    def test_an_address_in_any_spelling(self, opened, spelling):
        page = opened("small")
        search(page, spelling)
        assert column(page, "#search-results", 1) == ["2001:db8::a"]

    def test_who_else_holds_it(self, opened):
        page = opened("small")
        search(page, "192.0.2.50")
        assert column(page, "#search-results", 7) == ["n1", "n2"]
        owners = column(page, "#search-results", 3)
        assert owners[0].endswith(", also on n2")
        assert owners[1].endswith(", also on n1")

    @pytest.mark.parametrize(
        ("wanted", "expected"),
        [
            ("10.244.1.9", ["10.244.1.9 is free in network cbr0 on n1"]),
            ("10.244.2.1", ["10.244.2.1 is the gateway of network cbr0 on n2"]),
            ("10.99.0.1", ["10.99.0.1 is held by nobody and lies in no pool of this audit."]),
            ("2001:db8::b", [f"2001:db8::b is free in network lan on {host}" for host in ("n1", "n2")]),
        ],
    )
    def test_an_address_that_nobody_holds(self, opened, wanted, expected):
        page = opened("small")
        search(page, wanted)
        assert text(page, "#search-results li") == expected

    def test_a_subnet_a_part_of_an_address_and_a_host(self, opened):
        page = opened("small")
        search(page, "10.244.1.0/30")
        assert column(page, "#search-results", 1) == ["10.244.1.2", "10.244.1.3"]
        search(page, "10.250.")
        assert column(page, "#search-results", 1) == ["10.250.0.9"]
        search(page, "N2")
        assert column(page, "#search-results", 7) == ["n2"]
        search(page, "nothing-like-this")
        assert text(page, "#search-results") == ["Nothing is reserved that fits."]

    def test_a_link_to_a_search(self, browser, urls):
        page = browser.page()
        page.open(urls["small"] + "#q=kube-system-dns")
        page.until("!!document.querySelector('#search-results td')")
        assert column(page, "#search-results", 1) == ["10.244.1.5"]
        assert page.misdeeds(urls["small"]) == []
        page.close()


class TestTables:
    def test_sort(self, opened):
        page = opened("small")
        heads = "#findings-table th:nth-child({}) button"
        assert column(page, "#findings-table", 2) == ["FLEET002", "FLEET002", "FLEET001", "FLEET005", "IPAM001"]
        click(page, heads.format(3))
        assert column(page, "#findings-table", 3) == ["n1", "n1, n2", "n1, n2", "n1, n2", "n3"]
        click(page, heads.format(3))
        assert column(page, "#findings-table", 3) == ["n3", "n1, n2", "n1, n2", "n1, n2", "n1"]
        sorts = "[...document.querySelectorAll('#findings-table th')].map((one) => one.getAttribute('aria-sort'))"
        assert page.evaluate(sorts) == [None, None, "descending", None, None, None]

    def test_numbers_are_sorted_as_numbers_and_the_unknown_is_last(self, opened):
        page = opened("small")
        click(page, "#pools-table th:nth-child(4) button")
        assert [one.split(" ")[0] for one in column(page, "#pools-table", 4)] == [
            "1.8",
            "1.8",
            "253",
            "253",
            "13",
            "13",
            "-",
        ]
        click(page, "#pools-table th:nth-child(4) button")
        assert [one.split(" ")[0] for one in column(page, "#pools-table", 4)] == [
            "13",
            "13",
            "253",
            "253",
            "1.8",
            "1.8",
            "-",
        ]

    def test_findings_of_one_kind(self, opened):
        page = opened("small")
        choose = "(() => { const one = document.querySelector('#findings-controls select'); one.value = %s; "
        page.evaluate(choose % "'FLEET005'" + "one.dispatchEvent(new Event('change')); })()")
        assert column(page, "#findings-table", 2) == ["FLEET005"]
        page.evaluate(choose % "'1'" + "one.dispatchEvent(new Event('change')); })()")
        assert column(page, "#findings-table", 1) == ["warning"]

    def test_what_many_hosts_have_in_common_is_one_row(self, opened):
        page = opened("large")
        shown = "[...document.querySelectorAll('#findings-controls option')].map((one) => one.innerText)"
        assert page.evaluate(shown)[:4] == [
            "All (536)",
            "All of severity error (2)",
            "All of severity warning (334)",
            "All of severity info (200)",
        ]
        choose = "(() => { const one = document.querySelector('#findings-controls select'); one.value = 'IPAM009'; "
        page.evaluate(choose + "one.dispatchEvent(new Event('change')); })()")
        assert column(page, "#findings-table", 3) == ["200 hosts"]
        click(page, "#findings-table button.link")
        assert ", node-0995" in column(page, "#findings-table", 3)[0]

    def test_more_rows(self, opened):
        page = opened("large")
        assert page.evaluate("document.querySelectorAll('#findings-table tbody tr').length") == 100
        click(page, "#findings-table .more")
        assert page.evaluate("document.querySelectorAll('#findings-table tbody tr').length") == 337
        assert text(page, "#findings-table [role=status]") == ["337 shown"]


class TestMap:
    def test_every_address_has_a_sign_and_a_text(self, opened):
        page = opened("small")
        page.evaluate(
            "[...document.querySelectorAll('#pools-table .link')].find((one) => "
            "one.innerText.includes('10.244.1.1')).click()"
        )
        cells = page.evaluate(
            "[...document.querySelectorAll('.grid button')].map((one) => [one.ariaLabel, one.innerText])"
        )
        owner = audits.container(1)[:16]
        assert cells[:5] == [
            ["10.244.1.1, gateway, never handed out", "G"],
            [f"10.244.1.2, live, {owner}…, eth0, 1 h", "●"],
            [f"10.244.1.3, leaked, {audits.container(2)[:16]}…, eth0, 1 d", "✕"],
            ["10.244.1.4, static, vip-db, eth0, 10 d", "◆"],
            ["10.244.1.5, reserved, kube-system-dns, eth0, 1 h", "?"],
        ]
        assert cells[5] == ["10.244.1.6, free", "·"]
        assert len(cells) == 14

    def test_a_huge_pool_shows_the_blocks_in_use(self, opened):
        page = opened("small")
        search(page, "2001:db8::a")
        click(page, "#search-results .link")
        assert text(page, "#search-results figcaption") == ["2001:db8:: to 2001:db8::ff"]
        assert page.evaluate("document.querySelector('.c.sought').ariaLabel").startswith("2001:db8::a, live")
        assert "more blocks of 256 addresses are free and not drawn" in text(page, "#search-results")[0]

    def test_keyboard_alone(self, opened):
        page = opened("small")
        page.evaluate("document.querySelector('#pools-table .link').focus()")
        page.key("Enter")
        page.until("!!document.querySelector('.grid')")
        assert page.evaluate("document.activeElement.getAttribute('aria-expanded')") == "true"
        page.key("Tab")
        assert page.evaluate("document.activeElement.ariaLabel").startswith("192.0.2.1, gateway")
        page.key("ArrowDown")
        page.key("ArrowRight")
        assert page.evaluate("document.activeElement.ariaLabel") == "192.0.2.18, free"
        assert text(page, ".pick") == ["192.0.2.18, free"]
        page.key("Tab")
        assert not page.evaluate("document.activeElement.closest('.grid')")


class TestMeaning:
    def test_what_a_screen_reader_hears(self, opened):
        page = opened("small", **PHONE)
        nodes = page.call("Accessibility.getFullAXTree")["nodes"]
        roles = [one.get("role", {}).get("value") for one in nodes]
        for role, least in {
            "main": 1,
            "navigation": 1,
            "heading": 7,
            "table": 4,
            "columnheader": 15,
            "searchbox": 3,
        }.items():
            assert roles.count(role) >= least, role
        for one in nodes:
            role = one.get("role", {}).get("value")
            if not one.get("ignored") and role in ("button", "searchbox", "combobox", "link", "MenuListPopup"):
                assert role == "MenuListPopup" or one["name"]["value"].strip(), one

    def test_ids_are_there_once(self, opened):
        page = opened("large")
        assert (
            page.evaluate(
                "(() => { const ids = [...document.querySelectorAll('[id]')].map((one) => one.id); "
                "return ids.length - new Set(ids).size; })()"
            )
            == 0
        )


class TestHostile:
    def test_texts_of_a_node_stay_texts(self, opened):
        page = opened("hostile")
        elements = (
            "document.querySelectorAll('img, svg, iframe, object, form, b, [onerror], [onload], [onmouseover]').length"
        )
        for index in range(3):
            page.evaluate(f"document.querySelectorAll('#pools-table .link')[{index}].click()")
        click(page, "#findings-table .more")
        assert page.evaluate(elements) == 0
        assert page.evaluate("document.scripts.length") == 2
        assert page.evaluate("document.title").startswith("CNI address audit, ")
        owners = text(page, "#pools-table td.inner tbody td:nth-child(3) bdi:first-child")
        assert {visible(one) for one in audits.HOSTILE} <= set(owners)

    def test_each_can_be_sought(self, opened):
        page = opened("hostile")
        for one in audits.HOSTILE:
            wanted = visible(one)[:40]
            search(page, wanted)
            assert wanted.lower() in text(page, "#search-results")[0].lower()

    def test_the_policy_stops_what_would_get_through(self, browser, urls):
        page = browser.page()
        page.open(urls["hostile"])
        page.evaluate("document.body.append(Object.assign(document.createElement('img'), {src: 'http://192.0.2.1/x'}))")
        with pytest.raises(chromium.BrowserError, match="TrustedHTML"):
            page.evaluate("document.body.innerHTML = '<b>x</b>'")
        style = "Object.assign(document.createElement('style'), {textContent: 'body {display: none}'})"
        page.evaluate(f"document.body.append({style})")
        assert page.evaluate("getComputedStyle(document.body).display") == "block"
        assert any("Content Security Policy" in one for one in page.misdeeds(urls["hostile"]))
        page.close()
