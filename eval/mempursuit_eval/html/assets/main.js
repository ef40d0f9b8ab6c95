// Controls, filters and the address: everything chosen is in the hash, so a view can be passed on.
const state = { arm: "", k: 0, metric: "", framework: "", category: "", outcome: "", search: "", question: "" };

function options(select, entries, value) {
  select.replaceChildren(...entries.map(([key, text]) => el("option", { value: key, selected: key === value ? "" : null }, text)));
}

function readHash(report) {
  const given = new URLSearchParams(location.hash.slice(1));
  const oneOf = (name, known, otherwise) => (known.includes(given.get(name)) ? given.get(name) : otherwise);
  const arms = report.arms.filter((arm) => arm !== "order");
  state.arm = oneOf("arm", arms, report.pursuits[0] || arms[0]);
  state.k = Number(oneOf("k", report.budgets.map(String), String(report.budgets[0])));
  state.metric = oneOf("metric", Object.keys(report.metrics), "complete_coverage");
  state.framework = oneOf("framework", report.frameworks.map((f) => f.name), "");
  state.category = oneOf("category", report.categories, "");
  state.outcome = oneOf("outcome", Object.keys(OUTCOMES), "");
  state.search = given.get("search") || "";
  state.question = given.get("question") || "";
}

function writeHash() {
  const kept = Object.entries(state).filter(([, value]) => value !== "");
  history.replaceState(null, "", "#" + new URLSearchParams(kept));
}

function start(report) {
  if (report.arms.length < 2) throw new Error("This run has only the framework's own order; run it with --selectors paper.");
  readHash(report);
  const choices = report.arms.filter((arm) => arm !== "order").map((arm) => [arm, arm]);
  options(byId("arm"), choices, state.arm);
  options(byId("k"), report.budgets.map((k) => [String(k), String(k)]), String(state.k));
  options(byId("metric"), Object.entries(report.metrics), state.metric);
  options(byId("framework"), [["", "all"], ...report.frameworks.map((f) => [f.name, report.label(f.name)])], state.framework);
  options(byId("category"), [["", "all"], ...report.categories.map((c) => [c, c])], state.category);
  byId("search").value = state.search;

  let rows = [];
  const list = new WindowedList(byId("list"), byId("sizer"), {
    height: 62,
    draw: (row) => [
      el("div", {}, el("span", { class: { gained: "up", lost: "down" }[row.outcome] || "flat" }, OUTCOMES[row.outcome].mark),
        ` ${report.questions[row.question].text}`),
      el("div", { class: "small" }, `${OUTCOMES[row.outcome].label} · ${report.categories[report.questions[row.question].category]} · ${report.label(row.framework)}`),
    ],
    choose: (row) => { state.question = `${row.framework} ${report.questions[row.question].id}`; showDetail(row); writeHash(); },
  });

  function showDetail(row) {
    byId("detail").replaceChildren(...(row ? evidenceDiff(report, state, row).filter(Boolean) : []));
  }

  // Outcomes depend on arm, K and measure only; filters work on the finished rows.
  function judgeRows() {
    rows = report.frameworks.flatMap(({ name }) => report.questions.map((_, question) => ({
      framework: name, question, outcome: report.outcome(name, state.k, state.arm, state.metric, question),
    })));
  }

  function filterRows() {
    const words = state.search.toLowerCase().split(/\s+/).filter(Boolean);
    const category = report.categories.indexOf(state.category);
    const within = rows.filter((row) =>
      (!state.framework || row.framework === state.framework) &&
      (category < 0 || report.questions[row.question].category === category) &&
      words.every((word) => report.haystacks[row.question].includes(word)));
    const counts = Object.fromEntries(Object.keys(OUTCOMES).map((o) => [o, 0]));
    within.forEach((row) => (counts[row.outcome] += 1));
    drawOutcomes(counts, within.length);
    const shown = within.filter((row) => !state.outcome || row.outcome === state.outcome);
    const wanted = shown.findIndex((row) => state.question === `${row.framework} ${report.questions[row.question].id}`);
    const instead = shown.findIndex((row) => row.outcome === "gained");
    const active = wanted >= 0 ? wanted : Math.max(instead, shown.length ? 0 : -1);
    byId("count").textContent = shown.length === 1 ? "1 question" : `${shown.length} questions` +
      (report.frameworks.length > 1 && !state.framework ? " (each counted once a framework)" : "");
    list.show(shown, active);
    showDetail(shown[active]);
  }

  function drawOutcomes(counts, total) {
    const entries = [["", "", "all", total],
      ...Object.entries(OUTCOMES).map(([key, { mark, label }]) => [key, mark, label, counts[key]])]
      .filter(([key, , , n]) => key !== "unknown" || n || state.outcome === key);
    const focused = document.activeElement?.name === "outcome" ? document.activeElement.value : null;
    byId("outcomes").replaceChildren(byId("outcomes").querySelector("legend"), ...entries.map(([key, mark, label, n]) => {
      const input = el("input", { type: "radio", name: "outcome", value: key });
      input.checked = state.outcome === key;
      return el("label", { class: "chip" }, input, `${mark} ${label} ${n}`.trim());
    }));
    if (focused !== null) byId("outcomes").querySelector(`[value="${focused}"]`)?.focus();
  }

  function drawFigures() {
    byId("verdict").textContent = verdictLine(report, state);
    byId("table").replaceChildren(pairedTable(report, state));
    byId("curve-legend").replaceChildren(...curveLegend(report, state).filter(Boolean));
    for (const [id, plot] of [["categories", categoryPlot], ["curves", curvePlot]]) {
      const grid = byId(id);
      grid.replaceChildren(...report.frameworks.map(() => el("figure", {})));
      const width = grid.firstChild.clientWidth;
      grid.replaceChildren(...report.frameworks.map(({ name }) => plot(report, name, state, width)));
    }
  }

  function everything() { drawFigures(); judgeRows(); filterRows(); writeHash(); }

  for (const id of ["arm", "k", "metric"]) {
    byId(id).addEventListener("change", (event) => {
      state[id] = id === "k" ? Number(event.target.value) : event.target.value;
      everything();
    });
  }
  for (const id of ["framework", "category"]) {
    byId(id).addEventListener("change", (event) => { state[id] = event.target.value; filterRows(); writeHash(); });
  }
  byId("search").addEventListener("input", (event) => { state.search = event.target.value; filterRows(); writeHash(); });
  byId("outcomes").addEventListener("change", (event) => { state.outcome = event.target.value; filterRows(); writeHash(); });
  for (const id of ["controls", "filters"]) byId(id).addEventListener("submit", (event) => event.preventDefault());
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return; // a phone's address bar changes only the height
    width = window.innerWidth;
    drawFigures();
  });
  byId("controls").hidden = byId("report").hidden = false;
  everything();
}

unpack(byId("data")).then((data) => start(new Report(data))).catch((error) => {
  byId("notice").textContent = error.message;
  byId("notice").hidden = false;
  console.error(error);
});
