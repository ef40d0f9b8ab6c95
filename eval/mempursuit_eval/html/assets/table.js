// The paired table: change by sign, length and colour.
const BAR = { width: 160, height: 26 };

// The largest end of any interval of the chosen measure and arm, so that all bars share one scale.
function reach(pairs) {
  return Math.max(0.01, ...pairs.flatMap((p) => [Math.abs(p.ci_low), Math.abs(p.ci_high)]));
}

function changeBar(pair, scale, width = BAR.width) {
  const middle = width / 2;
  const x = (value) => middle + (value / scale) * (middle - 4);
  const y = BAR.height / 2;
  const kind = pair.delta < 0 ? "loss" : "gain";
  return svg(
    "svg",
    { width, height: BAR.height, "aria-hidden": "true" },
    svg("line", { x1: middle, x2: middle, y1: 2, y2: BAR.height - 2, class: "zero" }),
    svg("rect", {
      x: Math.min(middle, x(pair.delta)), y: y - 6, height: 12,
      width: Math.abs(x(pair.delta) - middle), class: kind, "stroke-width": 0,
      opacity: direction(pair.ci_low, pair.ci_high) === "flat" ? 0.45 : 1,
    }),
    svg("line", { x1: x(pair.ci_low), x2: x(pair.ci_high), y1: y, y2: y, class: "whisker" }),
    ...[pair.ci_low, pair.ci_high].map((end) =>
      svg("line", { x1: x(end), x2: x(end), y1: y - 4, y2: y + 4, class: "whisker" })
    )
  );
}

const VERDICTS = { up: "helps", down: "hurts", flat: "no difference shown" };

function pairedTable(report, { arm, k, metric }) {
  const pairs = report.paired.filter((p) => p.arm === arm && p.metric === metric);
  const scale = reach(pairs);
  const narrow = window.matchMedia("(max-width: 40rem)").matches;
  const end = (100 * scale).toFixed(0);
  const head = el("tr", {},
    narrow ? null : el("th", { scope: "col", class: "left" }, "Framework"), el("th", { scope: "col" }, "K"),
    el("th", { scope: "col" }, narrow ? "w/o → w/ %" : "without → with %"), el("th", { scope: "col" }, "Change"),
    el("th", { scope: "col" }, narrow ? "points" : `−${end} … +${end} points`),
    el("th", { scope: "col", class: "optional" }, "95 % interval"),
    el("th", { scope: "col", class: "optional" }, "p"),
    el("th", { scope: "col", class: "optional" }, "Gained / lost"),
    el("th", { scope: "col", class: "optional" }, "Shared %"),
    el("th", { scope: "col", class: "left optional" }, "Reads as"));
  const bodies = report.frameworks.map(({ name }) => {
    const rows = report.budgets.map((budget, n) => {
      const pair = report.pair(name, budget, arm, metric);
      const first = n === 0 && !narrow
        ? el("th", { scope: "rowgroup", rowspan: report.budgets.length, class: "left" }, report.label(name))
        : null;
      const rates = ["order", arm].map((a) => percent(report.rate(name, budget, a, metric)));
      const cells = [el("td", {}, String(budget)), el("td", {}, rates.join(" → "))];
      if (pair) {
        const kind = direction(pair.ci_low, pair.ci_high);
        cells.push(
          el("td", { class: kind }, points(pair.delta)),
          el("td", { class: "bar" }, changeBar(pair, scale, narrow ? 90 : BAR.width)),
          el("td", { class: "optional" }, `${points(pair.ci_low)} to ${points(pair.ci_high)}`),
          el("td", { class: "optional" }, pair.p_value < 0.001 ? "<.001" : pair.p_value.toFixed(3).replace(/^0/, "")),
          el("td", { class: "optional" }, `${pair.gained} / ${pair.lost}`),
          el("td", { class: "optional" }, (100 * report.shared(name, budget, arm)).toFixed(0)),
          el("td", { class: `left optional ${kind}` }, VERDICTS[kind]));
      } else {
        cells.push(el("td", { colspan: 7, class: "left flat" }, "no gold evidence"));
      }
      return el("tr", { class: budget === k ? "chosen" : null }, first, ...cells);
    });
    // On a phone the name gets a line of its own, so that the figures fit beside each other.
    const title = narrow ? el("tr", {}, el("th", { scope: "rowgroup", colspan: 4, class: "left alone" }, report.label(name))) : null;
    return el("tbody", {}, title, ...rows);
  });
  return el("table", {}, el("thead", {}, head), ...bodies);
}

function verdictLine(report, { arm, k, metric }) {
  const kinds = report.frameworks.map(({ name }) => {
    const pair = report.pair(name, k, arm, metric);
    return pair ? direction(pair.ci_low, pair.ci_high) : null;
  }).filter(Boolean);
  const count = (kind) => kinds.filter((found) => found === kind).length;
  const said = [[count("up"), "higher"], [count("down"), "lower"], [count("flat"), "not shown to differ"]]
    .filter(([n]) => n).map(([n, word]) => `${word} in ${n}`);
  return `${report.metrics[metric]} with “${arm}” at K = ${k}: ${said.join(", ")} of ${kinds.length} ` +
    `framework${kinds.length === 1 ? "" : "s"}.`;
}
