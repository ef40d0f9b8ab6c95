// Elements from data. Texts only ever become text nodes and attributes: nothing is parsed as HTML.
const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);
const byId = (id) => document.getElementById(id);

const percent = (rate) => (rate === null || rate === undefined ? "–" : (100 * rate).toFixed(1));

// Points with their sign; a change that rounds to nothing carries none.
function points(change) {
  const text = (100 * change).toFixed(1).replace("-", "−");
  if (/^−?0\.0$/.test(text)) return "0.0";
  return change > 0 ? "+" + text : text;
}

const direction = (low, high) => (low > 0 ? "up" : high < 0 ? "down" : "flat");
