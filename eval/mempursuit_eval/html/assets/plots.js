// Category plots and coverage curves, drawn at the width they have.
function categoryPlot(report, framework, { arm, k, metric }, width) {
  const rows = report.by_category.filter(
    (r) => r.framework === framework && r.k === k && r.arm === arm && r.metric === metric);
  const overall = report.pair(framework, k, arm, metric);
  const shown = [...rows, ...(overall ? [{ ...overall, category: "overall", without: report.rate(framework, k, "order", metric) }] : [])];
  const scale = reach(report.by_category.filter((r) => r.k === k && r.arm === arm && r.metric === metric));
  const [left, right, step] = [96, 108, 34];
  const middle = left + (width - left - right) / 2;
  const x = (value) => middle + (value / scale) * (middle - left - 4);
  const height = step * shown.length + 8;
  const marks = shown.flatMap((row, n) => {
    const y = 14 + n * step;
    const kind = row.delta < 0 ? "loss" : "gain";
    const name = `${row.category}: ${percent(row.without)} → ${percent(row.without + row.delta)}, ` +
      `${points(row.delta)} [${points(row.ci_low)}, ${points(row.ci_high)}], n = ${row.n}`;
    return [
      svg("text", { x: 0, y: y + 1, class: row.category === "overall" ? "strong" : null }, row.category),
      svg("text", { x: 0, y: y + 14 }, `n = ${row.n}`),
      svg("line", { x1: x(row.ci_low), x2: x(row.ci_high), y1: y, y2: y, class: "whisker" }),
      ...[row.ci_low, row.ci_high].map((end) =>
        svg("line", { x1: x(end), x2: x(end), y1: y - 4, y2: y + 4, class: "whisker" })),
      svg("circle", { cx: x(row.delta), cy: y, r: 5, class: kind }, svg("title", {}, name)),
      svg("text", { x: width, y: y + 1, "text-anchor": "end", class: "strong" }, `${points(row.delta)}`),
      svg("text", { x: width, y: y + 14, "text-anchor": "end" },
        `${percent(row.without)} → ${percent(row.without + row.delta)}`),
    ];
  });
  const spoken = shown.map((r) => `${r.category} ${points(r.delta)}`).join(", ");
  return figure(report.label(framework), svg("svg",
    { width, height, role: "img", "aria-label": `Change in points by category: ${spoken}` },
    svg("line", { x1: middle, x2: middle, y1: 0, y2: height, class: "zero" }), ...marks));
}

// The framework's order is grey and dashed, the chosen arm blue; other arms stay thin.
function stroke(arm, chosen) {
  if (arm === "order") return { stroke: "var(--native)", "stroke-dasharray": "5 4" };
  if (arm === chosen) return { stroke: "var(--gain)" };
  return { stroke: "var(--other)", "stroke-width": 1, "stroke-dasharray": "1 3" };
}

const curveMetric = (metric) =>
  metric === "accuracy" ? metric : metric.endsWith("recall") ? "session_recall" : "complete_coverage";

function curvePlot(report, framework, { arm, k, metric }, width) {
  const { k: budgets, arms: lines } = report.curves[framework][curveMetric(metric)];
  const values = Object.values(lines).flat();
  if (!values.length) return figure(report.label(framework), el("p", { class: "flat" }, "nothing to show"));
  const [left, right, top, height] = [36, 8, 8, 190];
  const low = Math.floor(10 * Math.min(...values)) / 10;
  const last = budgets[budgets.length - 1];
  const x = (budget) => left + ((budget - budgets[0]) / Math.max(1, last - budgets[0])) * (width - left - right);
  const y = (value) => top + ((1 - value) / (1 - low || 1)) * (height - top - 24);
  const ticks = [];
  for (let value = low; value <= 1.0001; value += low < 0.55 ? 0.2 : 0.1) ticks.push(value);
  const at = budgets.indexOf(k);
  const plot = svg("svg", { width, height, role: "img",
    "aria-label": `Coverage up to K = ${last}: ` + Object.entries(lines).map(([a, v]) => `${a} ${percent(v[at])} at K = ${k}`).join(", ") },
    ...ticks.flatMap((value) => [
      svg("line", { x1: left, x2: width - right, y1: y(value), y2: y(value), class: "axis" }),
      svg("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, (100 * value).toFixed(0)),
    ]),
    ...budgets.filter((b) => b === budgets[0] || b % 5 === 0).map((b) =>
      svg("text", { x: x(b), y: height - 6, "text-anchor": "middle" }, String(b))),
    ...Object.entries(lines).sort(([a]) => (a === arm ? 1 : -1)).map(([name, found]) =>
      svg("polyline", { class: "line", points: found.map((v, n) => `${x(budgets[n])},${y(v)}`).join(" "),
        ...stroke(name, arm) }, svg("title", {}, name))),
    ...["order", arm].filter((name) => at >= 0 && lines[name]).map((name) =>
      svg("circle", { cx: x(k), cy: y(lines[name][at]), r: 4, fill: stroke(name, arm).stroke },
        svg("title", {}, `${name}: ${percent(lines[name][at])} % at K = ${k}`))));
  return figure(report.label(framework), plot);
}

function curveLegend(report, { arm, metric }) {
  const entry = (name, text) => el("span", {},
    svg("svg", { width: 28, height: 10, "aria-hidden": "true" },
      svg("line", { x1: 0, x2: 28, y1: 5, y2: 5, class: "line", ...stroke(name, arm) })), text);
  const others = report.arms.filter((a) => a !== "order" && a !== arm);
  return [entry("order", "the framework's own order"), entry(arm, arm),
    others.length ? entry("", others.join(", ")) : null,
    el("span", { class: "small" }, `${report.metrics[curveMetric(metric)]} %`)];
}

const figure = (caption, content) => el("figure", {}, el("figcaption", {}, caption), content);
