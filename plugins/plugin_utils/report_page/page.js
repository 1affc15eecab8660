// Copyright (c) 2026, The nodenet.cni authors. SPDX-License-Identifier: GPL-3.0-or-later
"use strict";
(() => {
// Everything in the data may come from a node: it only ever becomes text of a node, never markup.
const data = JSON.parse(document.getElementById("data").textContent);
const SEVERITIES = ["error", "warning", "info"];
const SIGNS = data.signs; // state -> [sign, text]
const STATE_OF = {C: "conflict", S: "static", L: "leaked", A: "live", R: "reserved"};
const ACTIONS = {gc: "give the leaked addresses back", enlarge: "enlarge the range", unknown: "find out who is alive"};
const natural = new Intl.Collator("en", {numeric: true}).compare;
const number = new Intl.NumberFormat("en");

const byId = (id) => document.getElementById(id);

function el(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.filter((one) => one !== null && one !== undefined));
  return node;
}
const said = (text) => el("bdi", null, text);
function count(value) {
  if (value === null) return "-";
  if (value < 1e12) return number.format(value);
  const [head, power] = value.toExponential(1).split("e+");
  return `${head} \u00d7 10${[...power].map((one) => "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"[one]).join("")}`;
}

function span(seconds) {
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (seconds >= size) return `${Math.floor(seconds / size)} ${unit}`;
  }
  return "under 1 min";
}

// --- addresses: a Number is an IPv4 one, a BigInt an IPv6 one

function parse4(text) {
  const parts = text.split(".");
  if (parts.length !== 4 || !parts.every((one) => /^\d{1,3}$/.test(one) && Number(one) < 256)) return null;
  return parts.reduce((sum, one) => sum * 256 + Number(one), 0);
}

function parse6(text) {
  const last = text.slice(text.lastIndexOf(":") + 1);
  if (last.includes(".")) {
    const low = parse4(last);
    if (low === null) return null;
    const words = [Math.floor(low / 65536), low % 65536].map((one) => one.toString(16));
    text = text.slice(0, -last.length) + words.join(":");
  }
  const halves = text.split("::");
  if (halves.length > 2) return null;
  const [left, right] = halves.map((half) => half ? half.split(":") : []);
  const given = left.length + (right ? right.length : 0);
  if (right ? given > 7 : given !== 8) return null;
  const words = right ? [...left, ...Array(8 - given).fill("0"), ...right] : left;
  if (!words.every((one) => /^[0-9a-f]{1,4}$/i.test(one))) return null;
  return words.reduce((sum, one) => sum * 65536n + BigInt("0x" + one), 0n);
}

const parse = (text) => text.includes(":") ? parse6(text) : parse4(text);

function format(key) {
  if (typeof key === "number") return [24, 16, 8, 0].map((bits) => Math.floor(key / 2 ** bits) % 256).join(".");
  const words = [];
  for (let bits = 112n; bits >= 0n; bits -= 16n) words.push(Number((key >> bits) & 0xffffn));
  let start = -1, length = 1;
  for (let i = 0; i < 8; i++) {
    let j = i;
    while (j < 8 && words[j] === 0) j++;
    if (j - i > length) [start, length] = [i, j - i];
  }
  const hex = (part) => part.map((one) => one.toString(16)).join(":");
  return start < 0 ? hex(words) : hex(words.slice(0, start)) + "::" + hex(words.slice(start + length));
}

function parseRange(text) {
  const slash = text.indexOf("/");
  if (slash < 0) {
    const key = parse(text);
    return key === null ? null : [key, key];
  }
  const key = parse(text.slice(0, slash)), given = text.slice(slash + 1);
  if (key === null || !/^\d{1,3}$/.test(given)) return null;
  const bits = typeof key === "number" ? 32 : 128;
  if (Number(given) > bits) return null;
  const size = typeof key === "number" ? 2 ** (bits - given) : 1n << BigInt(bits - given);
  const first = typeof key === "number" ? Math.floor(key / size) * size : key / size * size;
  return [first, first + size - (typeof key === "number" ? 1 : 1n)];
}

const sameKind = (a, b) => typeof a === typeof b;
const inside = (key, [first, last]) => sameKind(key, first) && first <= key && key <= last;

// --- the networks of the hosts and their pools

const hostName = (index) => data.hosts[index];

// Reservations of a network, made from its packed form when they are first wanted.
function entries(net) {
  if (net.list) return net.list;
  let key = 0;
  net.list = net.a.map((step, index) => {
    key = typeof step === "number" ? key + step : 0;
    const address = typeof step === "number" ? key : parse6(step);
    return {
      key: address, text: step, state: STATE_OF[net.s[index]], owner: net.o[index], age: net.t[index] * 60,
      ifname: net.i[index] === undefined ? "eth0" : net.i[index], holder: net.h[index], set: net.r ? net.r[index] : net.r0, net,
    };
  });
  return net.list;
}
const addressText = (one) => typeof one.text === "string" ? one.text : format(one.key);
const CUT = /^[0-9a-f]{16}~$/;
const ownerText = (text) => CUT.test(text) ? text.slice(0, 16) + "\u2026" : text || "(empty file)";

const pools = [];
for (const net of data.nets) {
  for (const [set, ranges, gateways, usable, reserved, fixed, leaked, conflicts, free, action, full] of net.p) {
    const use = usable ? (usable - free) / usable : null;
    pools.push({net, set, ranges, gateways, usable, reserved, fixed, leaked, conflicts, free, action, full, use});
  }
}
// network and address -> indexes of the hosts that hold it together
const together = new Map(data.twice.map(([name, address, hosts]) => [name + " " + address, hosts]));
function alsoOn(one) {
  const hosts = (together.get(one.net.n + " " + addressText(one)) || []).filter((host) => host !== one.net.host);
  return hosts.length ? `, also on ${hosts.slice(0, 5).map(hostName).join(", ")}${hosts.length > 5 ? ` and ${hosts.length - 5} more` : ""}` : "";
}
const poolName = (pool) => pool.set === null ? "outside of every range" : pool.ranges.join(", ");
function spans(pool) {
  if (!pool.spans) {
    pool.spans = pool.ranges.map((one) => one.split("-").map(parse)).filter(([a, b]) => a !== null && b !== undefined && b !== null);
  }
  return pool.spans;
}
const poolOf = (one) => pools.find((pool) => pool.net === one.net && pool.set === one.set);
const poolEntries = (pool) => entries(pool.net).filter((one) => one.set === pool.set);

// --- tables

function stateCell(state) {
  return el("span", {class: "state"}, el("span", {class: "c " + state, "aria-hidden": "true"}, SIGNS[state][0]), state);
}

// A table that is sorted by its heads, shows `step` rows at a time, and can open a row.
function table({columns, rows, caption, step = 100, sort = null, detail = null, opener = 0}) {
  let shown = step, order = sort, current = rows;
  const status = el("p", {role: "status", class: "soft"});
  const body = el("tbody", {role: "rowgroup"});
  const more = el("button", {type: "button", class: "more", onclick: () => { shown += step * 5; fill(); }});
  const heads = columns.map((column, index) => {
    const button = column.key && el("button", {type: "button", onclick: () => {
      order = order && order[0] === index ? [index, -order[1]] : [index, column.first || 1];
      shown = step;
      fill();
    }}, column.label);
    return el("th", {scope: "col", role: "columnheader", class: column.n ? "n" : null}, button || column.label);
  });
  const node = el("table", {class: "cards", role: "table", "aria-label": caption},
    el("thead", {role: "rowgroup"}, el("tr", {role: "row"}, ...heads)), body);

  function line(row) {
    const cells = columns.map((column) => {
      const content = column.cell(row);
      return el("td", {role: "cell", class: column.n ? "n" : column.as, "data-label": column.label}, content);
    });
    const tr = el("tr", {role: "row"}, ...cells);
    if (!detail) return [tr];
    const inner = el("td", {role: "cell", class: "inner", colspan: columns.length});
    const fold = el("tr", {role: "row", hidden: true}, inner);
    const button = el("button", {type: "button", class: "link", "aria-expanded": "false", onclick: () => {
      fold.hidden = !fold.hidden;
      button.setAttribute("aria-expanded", String(!fold.hidden));
      if (!fold.hidden && !inner.firstChild) inner.append(detail(row));
    }});
    button.append(...cells[opener].childNodes);
    cells[opener].append(button);
    return [tr, fold];
  }

  function fill() {
    let sorted = current;
    if (order) {
      const [index, direction] = order, key = columns[index].key;
      sorted = current.map((row, place) => [key(row), place, row]).sort((a, b) => {
        const [x, y] = [a[0], b[0]];
        if (x === y) return a[1] - b[1];
        if (x === null || y === null) return x === null ? 1 : -1; // what is not known comes last
        const way = typeof x === "string" ? natural(x, y) : x < y ? -1 : 1;
        return way * direction || a[1] - b[1];
      }).map((one) => one[2]);
    }
    heads.forEach((head, index) => {
      if (order && order[0] === index) head.setAttribute("aria-sort", order[1] > 0 ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    });
    body.replaceChildren(...sorted.slice(0, shown).flatMap(line));
    const left = sorted.length - shown;
    status.textContent = left > 0 ? `${number.format(shown)} of ${number.format(sorted.length)} shown` : `${number.format(sorted.length)} shown`;
    more.hidden = left <= 0;
    more.textContent = `Show ${number.format(Math.min(left, step * 5))} more`;
  }
  fill();
  const box = el("div", {class: "scroll"}, status, node, more);
  return {
    box,
    show(chosen) { current = chosen; shown = step; fill(); },
    showAll(limit) { shown = Math.max(shown, limit); fill(); },
  };
}

function useCell(pool) {
  if (pool.use === null) return "-";
  const full = Math.floor(pool.use * 100);
  return el("span", null, el("meter", {min: 0, max: 100, low: 80, high: 95, optimum: 0, value: full, "aria-hidden": "true"}), ` ${full} %`);
}

const reservationColumns = [
  {label: "Address", as: "m", key: (one) => one.key, cell: (one) => said(addressText(one))},
  {label: "State", key: (one) => one.state, cell: (one) => stateCell(one.state)},
  {label: "Owner", key: (one) => one.owner, as: "w", cell: (one) => el("span", null, said(ownerText(one.owner)),
    one.state === "conflict" ? said(alsoOn(one)) : null,
    one.holder === undefined ? null : el("span", {class: "soft"}, " now held by ", said(ownerText(one.holder))))},
  {label: "Interface", key: (one) => one.ifname, cell: (one) => said(one.ifname)},
  {label: "Age", n: true, first: -1, key: (one) => one.age, cell: (one) => span(one.age)},
];
const placeColumns = [
  {label: "Network", key: (one) => one.net.n, cell: (one) => said(one.net.n)},
  {label: "Host", as: "m", key: (one) => hostName(one.net.host), cell: (one) => said(hostName(one.net.host))},
];

// --- the map of a pool

const blockOf = (key) => typeof key === "number" ? Math.floor(key / 256) : key / 256n;
const blockStart = (block) => typeof block === "number" ? block * 256 : block * 256n;
const BLOCKS = 16;

function map(pool, sought) {
  const held = new Map();
  for (const one of poolEntries(pool)) {
    if (one.key === null) continue; // no address, whatever the node says
    if (!held.has(one.key) || one.state === "conflict") held.set(one.key, one);
  }
  const gateways = new Set(pool.gateways.map(parse));
  const blocks = new Set();
  let total = 0;
  for (const [first, last] of spans(pool)) {
    const [from, to] = [blockOf(first), blockOf(last)];
    const number = Number(to - from) + 1;
    total += number;
    if (number <= BLOCKS) {
      for (let index = 0; index < number; index++) blocks.add(typeof from === "number" ? from + index : from + BigInt(index));
    }
  }
  for (const one of held.values()) blocks.add(blockOf(one.key));
  if (sought !== undefined) blocks.add(blockOf(sought));
  let order = [...blocks].sort((a, b) => a < b ? -1 : a > b ? 1 : 0);
  if (sought !== undefined) {
    const wanted = blockOf(sought);
    order = [wanted, ...order.filter((one) => one !== wanted)];
  }
  const node = el("div", null);
  const pick = el("p", {class: "pick"}, "Point at an address, or go through the map with the arrow keys.");
  const more = el("button", {type: "button", class: "more", onclick: () => draw()}, "Show more of the map");
  let drawn = 0;

  function describe(key) {
    const one = held.get(key);
    if (!one) return gateways.has(key) ? `${format(key)}, gateway, never handed out` : `${format(key)}, free`;
    return `${addressText(one)}, ${one.state}, ${ownerText(one.owner)}, ${one.ifname || "no interface name"}, ${span(one.age)}${one.state === "conflict" ? alsoOn(one) : ""}`;
  }

  function block(number) {
    const start = blockStart(number);
    const step = (index) => typeof start === "number" ? start + index : start + BigInt(index);
    const grid = el("div", {class: "grid", role: "group", "aria-label": `Addresses from ${format(start)}`});
    const cells = [];
    const there = (index) => held.has(step(index)) || spans(pool).some((one) => inside(step(index), one));
    for (let index = 0; index < 256; index++) {
      if (index % 16 === 0) {
        if (!Array.from({length: 16}, (_, offset) => index + offset).some(there)) {
          cells.push(...Array(16).fill(null));
          index += 15;
          continue;
        }
        const label = typeof start === "number" ? "." + index : ":" + index.toString(16);
        grid.append(el("span", {class: "row", "aria-hidden": "true"}, label));
      }
      const key = step(index);
      if (!there(index)) {
        grid.append(el("span", {class: "c none"}));
        cells.push(null);
        continue;
      }
      const one = held.get(key);
      const state = one ? one.state : gateways.has(key) ? "gateway" : "free";
      const cell = el("button", {type: "button", tabindex: "-1", class: `c ${state}${key === sought ? " sought" : ""}`,
        "aria-label": describe(key), "data-index": index}, SIGNS[state][0]);
      grid.append(cell);
      cells.push(cell);
    }
    const first = cells[sought === undefined || blockOf(sought) !== number ? -1 : Number(sought - start)] || cells.find((one) => one);
    if (!first) return null;
    first.tabIndex = 0;
    let current = first;
    const tell = (event) => {
      const index = event.target.dataset ? event.target.dataset.index : undefined;
      if (index !== undefined) pick.replaceChildren(said(describe(step(Number(index)))));
    };
    grid.addEventListener("mouseover", tell);
    grid.addEventListener("focusin", (event) => {
      tell(event);
      current.tabIndex = -1;
      current = event.target;
      current.tabIndex = 0;
    });
    grid.addEventListener("keydown", (event) => {
      const steps = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -16, ArrowDown: 16};
      let index = Number(event.target.dataset.index);
      if (event.key === "Home") index = cells.findIndex((one) => one);
      else if (event.key === "End") index = 255 - [...cells].reverse().findIndex((one) => one);
      else if (steps[event.key]) {
        index += steps[event.key];
        while (index >= 0 && index < 256 && !cells[index]) index += steps[event.key];
      } else return;
      event.preventDefault();
      if (cells[index]) cells[index].focus();
    });
    return el("figure", {class: "map"}, el("figcaption", null, `${format(start)} to ${format(step(255))}`), grid);
  }

  function draw() {
    const next = order.slice(drawn, drawn + BLOCKS);
    drawn += next.length;
    pick.before(...next.map(block).filter((one) => one));
    more.hidden = drawn >= order.length;
  }
  node.append(pick, more);
  draw();
  if (total > blocks.size) node.append(el("p", {class: "soft"}, `${count(total - blocks.size)} more blocks of 256 addresses are free and not drawn.`));
  return node;
}

function poolDetail(pool, sought) {
  const list = poolEntries(pool);
  const node = el("div", null, el("p", null, "Network ", said(pool.net.n), " on ", said(hostName(pool.net.host)), ": ", said(poolName(pool)),
    pool.net.source ? el("span", {class: "soft"}, " (", said(pool.net.source), ")") : null));
  if (pool.set !== null) node.append(map(pool, sought));
  if (list.length) node.append(table({columns: reservationColumns, rows: list, caption: "Reservations of the pool"}).box);
  else node.append(el("p", null, "No address is reserved."));
  return node;
}

// --- what is on the page

function control(label, node) {
  return el("label", null, label, node);
}

function later(action) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, 120);
  };
}

function hostsCell(one) {
  if (one.names.length <= 4) return said(one.hosts);
  const names = el("bdi", {hidden: true});
  const button = el("button", {type: "button", class: "link", "aria-expanded": "false", onclick: () => {
    names.hidden = !names.hidden;
    names.textContent = one.hosts;
    button.setAttribute("aria-expanded", String(!names.hidden));
  }}, `${number.format(one.names.length)} hosts`);
  return el("span", null, button, " ", names);
}

function findingsPart() {
  const place = byId("findings-table");
  if (!place) return null;
  const rows = data.findings.map(([severity, code, hosts, where, text, hint, count]) => {
    const names = hosts.map(hostName);
    return {severity, code, where, text, hint: data.hints[hint], names, hosts: names.join(", "), count};
  });
  const list = table({
    caption: "Findings", rows, step: 100,
    columns: [
      {label: "Severity", key: (one) => one.severity, cell: (one) => el("span", {class: SEVERITIES[one.severity] + "-t"}, SEVERITIES[one.severity])},
      {label: "Code", as: "k", key: (one) => one.code, cell: (one) => one.code},
      {label: "Hosts", key: (one) => one.hosts, as: "h", cell: hostsCell},
      {label: "Where", as: "m", key: (one) => one.where, cell: (one) => said(one.where)},
      {label: "What", key: (one) => one.text, as: "w", cell: (one) => said(one.text)},
      {label: "What to do", key: (one) => one.hint, as: "w", cell: (one) => said(one.hint)},
    ],
  });
  const sum = (some) => some.reduce((total, one) => total + one.count, 0);
  const kinds = new Map();
  for (const one of rows) kinds.set(one.code, {severity: one.severity, count: (kinds.get(one.code) || {count: 0}).count + one.count});
  const kind = el("select", null, el("option", {value: ""}, `All (${number.format(sum(rows))})`));
  for (const [severity, name] of SEVERITIES.entries()) {
    const total = sum(rows.filter((one) => one.severity === severity));
    if (total) kind.append(el("option", {value: severity}, `All of severity ${name} (${number.format(total)})`));
  }
  for (const [code, one] of [...kinds].sort((a, b) => a[1].severity - b[1].severity || natural(a[0], b[0]))) {
    kind.append(el("option", {value: code}, `${code} ${SEVERITIES[one.severity]} (${number.format(one.count)})`));
  }
  const text = el("input", {type: "search", spellcheck: "false"});
  const choose = () => {
    const wanted = text.value.trim().toLowerCase();
    list.show(rows.filter((one) => (!kind.value || one.code === kind.value || String(one.severity) === kind.value) &&
      (!wanted || [one.code, one.hosts, one.where, one.text].some((part) => part.toLowerCase().includes(wanted)))));
  };
  kind.addEventListener("change", choose);
  text.addEventListener("input", later(choose));
  byId("findings-controls").append(control("Kind", kind), control("Only with this text", text));
  byId("findings-controls").hidden = false;
  place.replaceChildren(list.box);
  return list;
}

function poolsPart() {
  const trouble = (pool) => pool.conflicts * 1e6 + (pool.leaked || 0) * 10 + (pool.use || 0);
  const rows = [...pools].sort((a, b) => trouble(b) - trouble(a));
  const figure = (label, key) => ({label, n: true, first: -1, key, cell: (one) => count(key(one))});
  const any = (key) => rows.some((one) => one[key] !== null);
  // a name in one piece is found again; one that goes on for lines is the word of a node
  const whole = rows.every((one) => hostName(one.net.host).length <= 40);
  const list = table({
    caption: "Pools", rows, step: 50, detail: poolDetail,
    columns: [
      {label: "Pool", as: "p", key: (one) => poolName(one), cell: (one) => el("bdi", null, ...poolName(one).split(/(?<=-)/).flatMap((part) => [part, el("wbr")]))},
      {label: "Network", key: (one) => one.net.n, cell: (one) => said(one.net.n)},
      {label: "Host", as: whole ? "o" : "h", key: (one) => hostName(one.net.host), cell: (one) => said(hostName(one.net.host))},
      figure("Usable", (one) => one.usable), figure("Reserved", (one) => one.reserved), figure("Static", (one) => one.fixed),
      figure("Leaked", (one) => one.leaked), figure("Conflicts", (one) => one.conflicts), figure("Free", (one) => one.free),
      {label: "Use", n: true, first: -1, key: (one) => one.use, cell: useCell},
      any("full") && {label: "Full in", n: true, key: (one) => one.full, cell: (one) => one.full === null ? "" : span(one.full)},
      any("action") && {label: "What helps", key: (one) => one.action, cell: (one) => ACTIONS[one.action] || ""},
    ].filter((one) => one),
  });
  const text = el("input", {type: "search", spellcheck: "false"});
  text.addEventListener("input", later(() => {
    const wanted = text.value.trim().toLowerCase();
    list.show(rows.filter((one) => !wanted || [poolName(one), one.net.n, hostName(one.net.host)].some((part) => part.toLowerCase().includes(wanted))));
  }));
  byId("pools-controls").append(control("Only pools with this host, network or range", text));
  byId("pools-controls").hidden = false;
  byId("pools-table").replaceChildren(list.box);
}

function searchPart() {
  const query = byId("query"), place = byId("search-results");
  const MOST = 500;

  function find() {
    const wanted = query.value.trim();
    try { // a viewer may forbid it, and half a pair cannot be encoded
      history.replaceState(null, "", wanted ? "#q=" + encodeURIComponent(wanted) : location.pathname + location.search);
    } catch { /* then there is no link to this search */ }
    place.replaceChildren();
    byId("search").classList.toggle("noprint", wanted.length < 2);
    if (wanted.length < 2) return;
    const range = parseRange(wanted.toLowerCase());
    let lower = wanted.toLowerCase();
    if (/^[0-9a-f]{17,64}$/.test(lower)) lower = lower.slice(0, 16) + "~";
    const partial = range === null && /^[0-9.]+$/.test(lower);
    const found = [];
    let total = 0;
    for (const net of data.nets) {
      const whole = range === null && hostName(net.host).toLowerCase() === lower;
      for (const one of entries(net)) {
        if (range !== null ? !inside(one.key, range)
          : !(whole || one.owner.toLowerCase().includes(lower) || (one.holder || "").toLowerCase().includes(lower) ||
              (partial && addressText(one).startsWith(lower)) || (typeof one.text === "string" && one.text.startsWith(lower)))) continue;
        total++;
        if (found.length < MOST) found.push(one);
      }
    }
    const single = range !== null && range[0] === range[1];
    if (single) place.append(notes(range[0], new Set(found.map((one) => one.net))));
    if (!total) {
      if (!single) place.append(el("p", {role: "status"}, "Nothing is reserved that fits."));
      return;
    }
    if (total > found.length) place.append(el("p", null, `${number.format(total)} fit, the first ${number.format(MOST)} are shown. Give more of the address or owner.`));
    const list = table({
      caption: "Reservations found", rows: found, step: 50, columns: [...reservationColumns, ...placeColumns],
      detail: (one) => poolDetail(poolOf(one) || {net: one.net, set: one.set, ranges: [], gateways: []}, one.set === null ? undefined : one.key),
    });
    place.append(list.box);
  }

  // What an address is where nobody holds it.
  function notes(key, holding) {
    const list = el("ul", {class: "hits", role: "status"});
    const near = pools.filter((pool) => !holding.has(pool.net) && spans(pool).some((one) => inside(key, one)));
    for (const pool of near.slice(0, 10)) {
      const gateway = pool.gateways.some((one) => parse(one) === key);
      list.append(el("li", null, said(format(key)), gateway ? " is the gateway of network " : " is free in network ", said(pool.net.n), " on ", said(hostName(pool.net.host))));
    }
    if (near.length > 10) list.append(el("li", null, `and so on ${number.format(near.length - 10)} more hosts or networks`));
    if (!near.length && !holding.size) list.append(el("li", null, said(format(key)), " is held by nobody and lies in no pool of this audit."));
    return list;
  }

  function fromHash() {
    if (!location.hash.startsWith("#q=")) return;
    try { query.value = decodeURIComponent(location.hash.slice(3)); } catch { return; }
    find();
  }
  query.addEventListener("input", later(find));
  byId("search-controls").hidden = false;
  addEventListener("hashchange", fromHash);
  fromHash();
}

// Rows of tables that a narrow screen shows as cards keep their meaning for those who hear them.
for (const node of document.querySelectorAll("table.cards")) {
  node.setAttribute("role", "table");
  for (const part of node.querySelectorAll("thead, tbody")) part.setAttribute("role", "rowgroup");
  for (const part of node.querySelectorAll("tr")) part.setAttribute("role", "row");
  for (const part of node.querySelectorAll("th")) part.setAttribute("role", "columnheader");
  for (const part of node.querySelectorAll("td")) part.setAttribute("role", "cell");
}
for (const time of document.querySelectorAll("time")) {
  const moment = new Date(time.dateTime);
  const age = (Date.now() - moment) / 1000;
  const zoned = {dateStyle: "medium", timeStyle: "long"}; // with the time zone: a page is read, and printed, anywhere
  time.textContent = moment.toLocaleString(undefined, zoned) + (age < 0 ? "" : ` (${span(age)} ago)`); // clocks differ
}
const findings = findingsPart();
poolsPart();
searchPart();
let opened = [];
addEventListener("beforeprint", () => {
  if (findings) findings.showAll(1000);
  opened = [...document.querySelectorAll("details:not([open])")]; // paper cannot be clicked on
  for (const one of opened) one.open = true;
});
addEventListener("afterprint", () => { for (const one of opened) one.open = false; });
})();
