// The embedded data, and what follows from it.
const OUTCOMES = {
  gained: { mark: "+", label: "gained" },
  lost: { mark: "−", label: "lost" },
  both: { mark: "=", label: "both" },
  neither: { mark: "○", label: "neither" },
  unknown: { mark: "?", label: "not known" },
};

async function unpack(element) {
  if (typeof DecompressionStream === "undefined") {
    throw new Error("This browser cannot unpack the data (needs DecompressionStream; any browser since 2023 has it).");
  }
  const bytes = Uint8Array.from(atob(element.textContent.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

class Report {
  constructor(data) {
    Object.assign(this, data);
    this.haystacks = data.questions.map((q) => `${q.text} ${q.answer} ${q.id}`.toLowerCase());
  }

  label(framework) {
    const found = this.frameworks.find((f) => f.name === framework);
    return found.label + (found.kind === "port" ? " (port)" : "");
  }

  rate(framework, k, arm, metric) {
    const row = this.rows.find((r) => r.framework === framework && r.k === k && r.arm === arm);
    return row ? row[metric] : null;
  }

  pair(framework, k, arm, metric) {
    return this.paired.find(
      (r) => r.framework === framework && r.k === k && r.arm === arm && r.metric === metric
    );
  }

  shared(framework, k, arm) {
    const row = this.overlap.find((r) => r.framework === framework && r.k === k && r.arm === arm);
    return row ? row.overlap : null;
  }

  // Memories an arm chose, in the order handed back.
  picks(framework, k, arm, question) {
    const read = this.reads[framework];
    return (arm === "order" ? read.order[question] : read[arm].picks[question]).slice(0, k);
  }

  // Memories that reach the model: the picks, unless the framework expands them.
  context(framework, k, arm, question) {
    const expanded = this.contexts[framework]?.[`${k} ${arm}`];
    return expanded ? expanded[question] : this.picks(framework, k, arm, question);
  }

  answer(framework, k, arm, question) {
    return this.answers[framework]?.[`${k} ${arm}`]?.[question] || null;
  }

  // The chosen measure of one arm's context, 0-1; null where it is not known.
  value(framework, k, arm, metric, question) {
    if (metric === "accuracy") return this.answer(framework, k, arm, question)?.[0] ?? null;
    return this.score(question, this.context(framework, k, arm, question), metric);
  }

  score(question, context, metric) {
    const { sessions, turns } = this.questions[question];
    const gold = metric.startsWith("turn") ? turns : sessions;
    if (!gold.length) return null;
    const reached = new Set();
    for (const m of context) {
      if (metric.startsWith("turn")) this.memories[m][4].forEach((t) => reached.add(t));
      else reached.add(this.memories[m][1]);
    }
    const recall = gold.filter((g) => reached.has(g)).length / gold.length;
    return metric.endsWith("recall") ? recall : Number(recall === 1);
  }

  // Gained and lost: the measure went up or down. Both and neither: unchanged, complete or not.
  outcome(framework, k, arm, metric, question) {
    const before = this.value(framework, k, "order", metric, question);
    const after = this.value(framework, k, arm, metric, question);
    if (before === null || after === null) return "unknown";
    if (after > before) return "gained";
    if (after < before) return "lost";
    return before === 1 ? "both" : "neither";
  }
}
