// A listbox that draws only the rows in view, so that its length costs nothing.
class WindowedList {
  constructor(box, sizer, { height, draw, choose }) {
    Object.assign(this, { box, sizer, height, draw, choose });
    this.items = [];
    this.active = -1;
    box.addEventListener("scroll", () => this.render(), { passive: true });
    box.addEventListener("keydown", (event) => this.key(event));
    box.addEventListener("click", (event) => {
      const row = event.target.closest("[data-n]");
      if (row) this.select(Number(row.dataset.n));
    });
    new ResizeObserver(() => this.render()).observe(box);
  }

  show(items, active) {
    this.items = items;
    this.active = active;
    this.sizer.style.height = `${items.length * this.height}px`;
    this.box.scrollTop = active >= 0 ? (active + 0.5) * this.height - this.box.clientHeight / 2 : 0;
    this.render();
  }

  select(n) {
    if (n < 0 || n >= this.items.length) return;
    this.active = n;
    this.reveal(n);
    this.render();
    this.choose(this.items[n]);
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.box.clientHeight / this.height) - 1);
    const last = this.items.length - 1;
    const target = {
      ArrowDown: this.active + 1, ArrowUp: this.active - 1, PageDown: this.active + page,
      PageUp: this.active - page, Home: 0, End: last,
    }[event.key];
    if (target === undefined) return;
    event.preventDefault();
    this.select(Math.max(0, Math.min(last, target)));
  }

  reveal(n) {
    const top = n * this.height;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    const bottom = top + this.height - this.box.clientHeight;
    if (bottom > this.box.scrollTop) this.box.scrollTop = bottom;
  }

  render() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / this.height) - 5);
    const count = Math.ceil(this.box.clientHeight / this.height) + 10;
    const rows = this.items.slice(first, first + count).map((item, i) => {
      const n = first + i;
      const row = el("div", {
        class: "row", role: "option", id: `row-${n}`, "data-n": n, "aria-setsize": this.items.length,
        "aria-posinset": n + 1, "aria-selected": n === this.active ? "true" : "false",
      }, ...this.draw(item));
      row.style.top = `${n * this.height}px`;
      return row;
    });
    this.sizer.replaceChildren(...rows);
    if (this.active >= 0) this.box.setAttribute("aria-activedescendant", `row-${this.active}`);
    else this.box.removeAttribute("aria-activedescendant");
  }
}
