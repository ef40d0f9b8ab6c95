// One question: both contexts side by side, and the residual that led from pick to pick.
const MARKS = {
  kept: { sign: "=", text: "kept" },
  in: { sign: "+", text: "came in" },
  out: { sign: "−", text: "went out" },
  absent: { sign: "○", text: "in neither" },
};

function memoryCard(report, question, memory, mark, places) {
  const [text, session, when, speaker, evidence] = report.memories[memory];
  const { sessions, turns } = report.questions[question];
  const goldTurns = evidence.filter((t) => turns.includes(t));
  const star = goldTurns.length
    ? `★ gold evidence ${goldTurns.join(", ")}`
    : sessions.includes(session) ? "☆ gold session" : null;
  const { sign, text: word } = MARKS[mark];
  return el("li", { class: `memory ${mark} ${goldTurns.length ? "gold" : ""}` },
    el("div", { class: "badges" },
      el("span", { class: `badge ${mark}` }, `${sign} ${word}`),
      ...places.map((place) => el("span", {}, place)),
      star ? el("span", { class: `badge ${goldTurns.length ? "star" : "flat"}` }, star) : null),
    el("p", {}, text),
    el("div", { class: "small" }, `${session === null ? "session not known" : `session ${session}`} · ${day(when)} · ${speaker}` + (evidence.length ? ` · ${evidence.join(", ")}` : "")));
}

const day = (when) => new Date(when).toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric" });

function evidenceDiff(report, { arm, k, metric }, { framework, question }) {
  const asked = report.questions[question];
  const read = report.reads[framework];
  const native = report.context(framework, k, "order", question);
  const chosen = report.context(framework, k, arm, question);
  const picks = report.picks(framework, k, arm, question);
  const own = report.picks(framework, k, "order", question);
  const trace = read[arm];
  const expands = Boolean(report.contexts[framework]);
  const scoreName = arm === "paper" ? "utility" : "score";
  const rankOf = (memory) => {
    const at = own.indexOf(memory);
    if (at >= 0) return at + 1;
    const pick = picks.indexOf(memory);
    return pick >= 0 && trace.ranks[question][pick] !== null ? trace.ranks[question][pick] + 1 : null;
  };
  const places = (memory) => {
    const [rank, pick] = [rankOf(memory), picks.indexOf(memory)];
    const score = pick >= 0 ? trace.scores?.[question][pick] : null;
    const found = [];
    if (rank !== null) found.push(`native rank ${rank}`);
    if (pick >= 0) found.push(`pick ${pick + 1}`);
    if (score !== null && score !== undefined) found.push(`${scoreName} ${signed(score)}`);
    if (rank === null && pick < 0) found.push("added by the framework");
    return found;
  };
  const column = (title, name, context, other, absent) => {
    const value = report.value(framework, k, name, metric, question);
    const given = report.answer(framework, k, name, question);
    const ids = new Set(other);
    return el("section", {},
      el("h4", {}, title),
      el("p", { class: "small" }, value === null ? `${report.metrics[metric]}: not known`
        : `${report.metrics[metric]}: ${percent(value)} %`),
      given ? el("p", {}, `Answer (${verdict(given[0])}): ${given[1] ?? "none"}`) : null,
      el("ol", { class: "context" }, ...context.map((m) =>
        memoryCard(report, question, m, ids.has(m) ? "kept" : absent, places(m)))));
  };
  const outcome = OUTCOMES[report.outcome(framework, k, arm, metric, question)];
  const missing = asked.evidence.filter((m) => !native.includes(m) && !chosen.includes(m));
  return [
    el("h3", { class: "question" }, asked.text),
    el("dl", { class: "facts" },
      el("dt", {}, "Gold answer"), el("dd", {}, asked.answer || "–"),
      el("dt", {}, "Kind"), el("dd", {}, `${report.categories[asked.category]} · ${asked.id} · ${report.label(framework)}, K = ${k}`),
      el("dt", {}, "Gold evidence"), el("dd", {}, asked.turns.length || asked.sessions.length
        ? `${asked.turns.join(", ") || "no turn that exists"} (session${asked.sessions.length === 1 ? "" : "s"} ${asked.sessions.join(", ")})`
        : "none given"),
      el("dt", {}, "Outcome"), el("dd", {}, `${outcome.mark} ${outcome.label}`)),
    el("div", { class: "two" },
      column(`Without: ${expands ? `what the framework's top ${k} bring` : `the framework's top ${k}`}`,
        "order", native, chosen, "out"),
      column(`With: ${expands ? `what ${k} picks of ${arm} bring` : `${arm}, in entry order`}`,
        arm, chosen, native, "in")),
    trace.residuals?.[question].some((r) => r !== null) ? tracePlot(report, question, trace, picks, read.residual[question][report.budgets.indexOf(k)], k) : null,
    missing.length ? el("details", {},
      el("summary", {}, `${missing.length} gold ${missing.length === 1 ? "memory" : "memories"} in neither context`),
      el("ol", { class: "context" }, ...missing.map((m) =>
        memoryCard(report, question, m, "absent", [])))) : null,
  ];
}

const verdict = (score) =>
  score === null ? "no verdict" : score === 1 ? "correct" : score === 0 ? "wrong" : `${percent(score)} %`;

const signed = (value) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(3);

function tracePlot(report, question, trace, picks, native, k) {
  // A memory that kept its place for want of a vector has no refit of its own.
  const steps = [...trace.residuals[question].keys()].filter((n) => n < k && trace.residuals[question][n] !== null);
  const residuals = steps.map((n) => trace.residuals[question][n]);
  const gaps = steps.map((n) => trace.gaps[question][n]);
  const evidence = new Set(report.questions[question].evidence);
  const width = Math.min(560, Math.max(280, byId("detail").clientWidth - 8));
  const [left, right] = [44, 12];
  const x = (n) => left + (n / Math.max(1, residuals.length - 1)) * (width - left - right);
  const all = native === null ? residuals : [...residuals, native];
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const pad = Math.max(0.002, (high - low) * 0.1);
  const y = (r) => 14 + ((high + pad - r) / (high - low + 2 * pad)) * 120;
  const top = Math.max(...gaps, 1e-9);
  const g = (value) => 226 - (value / top) * 50;
  const star = (cx, cy) => {
    const corner = (n) => {
      const radius = n % 2 ? 3.2 : 7.5;
      const angle = Math.PI * (n / 5 - 0.5);
      return `${(cx + radius * Math.cos(angle)).toFixed(1)},${(cy + radius * Math.sin(angle)).toFixed(1)}`;
    };
    return svg("polygon", { class: "gold", points: [...Array(10).keys()].map(corner).join(" ") });
  };
  const parts = [
    ...[low, high].map((r) => svg("text", { x: left - 6, y: y(r) + 4, "text-anchor": "end" }, r.toFixed(3))),
    svg("text", { x: left - 6, y: g(0) + 4, "text-anchor": "end" }, "0"),
    svg("text", { x: left - 6, y: g(top) + 4, "text-anchor": "end" }, top < 0.001 ? top.toExponential(0) : top.toFixed(3)),
    svg("line", { x1: left, x2: width - right, y1: g(0), y2: g(0), class: "axis" }),
    svg("polyline", { class: "line", stroke: "var(--gain)", points: residuals.map((r, n) => `${x(n)},${y(r)}`).join(" ") }),
    ...gaps.map((gap, n) => svg("rect", { x: x(n) - 3, y: g(gap), width: 6, height: g(0) - g(gap), fill: "var(--native)" },
      svg("title", {}, `after pick ${steps[n] + 1}: g = ${gap}`))),
    ...residuals.map((r, n) => {
      const title = svg("title", {}, `pick ${steps[n] + 1}: ‖r‖ = ${r}`);
      if (!evidence.has(picks[steps[n]])) return svg("circle", { cx: x(n), cy: y(r), r: 3.5, class: "gain" }, title);
      const mark = star(x(n), y(r));
      mark.append(title);
      return mark;
    }),
    ...steps.map((pick, n) => (n === 0 || (pick + 1) % 5 === 0
      ? svg("text", { x: x(n), y: 246, "text-anchor": "middle" }, String(pick + 1)) : null)),
    svg("text", { x: 0, y: 74, class: "strong" }, "‖r‖"),
    svg("text", { x: 0, y: 206, class: "strong" }, "g"),
  ];
  if (native !== null) {
    parts.unshift(svg("line", { x1: left, x2: width - right, y1: y(native), y2: y(native), stroke: "var(--native)", "stroke-dasharray": "5 4" },
      svg("title", {}, `the framework's top ${k}: ‖r‖ = ${native}`)));
  }
  const last = residuals[residuals.length - 1];
  const said = `The residual ‖r‖ falls from ${residuals[0]} to ${last}` +
    (native === null ? "" : `; the framework's own top ${k}, refitted alike, leaves ${native} (dashed)`) +
    `. Bars: the certificate g, a bound on how far the set is from the best mix of the whole pool; ${gaps[gaps.length - 1]} at the end. ★: gold evidence.`;
  return el("figure", { class: "trace" },
    el("figcaption", {}, "What is still missing after each pick"),
    svg("svg", { width, height: 252, role: "img", "aria-label": said }, ...parts),
    el("p", { class: "hint" }, said));
}
