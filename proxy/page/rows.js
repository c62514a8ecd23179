// Shows rows of equal height in a scrolling box. Only the visible ones exist, so a body of many megabytes costs what a
// screen costs. It is a tree for the keyboard and for screen readers: arrows move and fold, Enter follows a mark.

import { fill, h } from "./dom.js";

const HEIGHT = 18;
const OVERSCAN = 20;
let ids = 0;
let width = 0;

/** The width of one character of the code font, in pixels. */
function measure() {
  if (width) return width;
  const probe = h("code", { class: "probe" }, "0".repeat(100));
  document.body.append(probe);
  width = probe.getBoundingClientRect().width / 100;
  probe.remove();
  return width;
}

/** `lay(columns)` returns the rows for a width in characters; `draw(row)` the nodes of one. A row has `level`, and may
 *  have `open` (true or false if it folds), `marks` (numbers), `kind` (a class) and `quiet` (no item of its own). */
export class Rows {
  constructor(label, { lay, draw, fold, follow }) {
    Object.assign(this, { lay, draw, fold, follow, rows: [], made: new Map(), active: 0, selected: null, columns: 0 });
    this.id = `rows-${(ids += 1)}`;
    this.inner = h("div", { class: "rows", role: "none" });
    this.box = h("div", { class: "code-box", role: "tree", tabindex: "0", "aria-label": label, onkeydown: (event) => this.press(event) }, this.inner);
    this.box.addEventListener("scroll", () => this.paint(), { passive: true });
    this.box.addEventListener("focus", () => this.activate(this.active, false));
    this.inner.addEventListener("click", (event) => this.click(event));
    this.sizes = new ResizeObserver(() => { if (this.count() !== this.columns) this.refresh(); else this.paint(); });
    this.sizes.observe(this.box);
  }

  count() { return Math.max(20, Math.floor((this.box.clientWidth - 58) / measure())); }

  /** Lay all rows anew, after a change of what they show or of the width. */
  refresh() {
    if (!this.box.clientWidth) return;
    this.columns = this.count();
    this.rows = this.lay(this.columns);
    this.inner.style.height = `${this.rows.length * HEIGHT + 12}px`;
    this.made.clear();
    this.inner.replaceChildren();
    this.active = Math.min(this.active, Math.max(0, this.rows.length - 1));
    this.paint();
  }

  paint() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / HEIGHT) - OVERSCAN);
    const last = Math.min(this.rows.length, Math.ceil((this.box.scrollTop + this.box.clientHeight) / HEIGHT) + OVERSCAN);
    for (const [index, made] of this.made) if (index < first || index >= last) { made.remove(); this.made.delete(index); }
    const added = document.createDocumentFragment();
    for (let index = first; index < last; index += 1) if (!this.made.has(index)) added.append(this.make(index));
    if (added.childNodes.length) {
      this.inner.append(added);
      const sorted = [...this.made].sort(([one], [other]) => one - other).map(([, made]) => made);
      if (sorted.some((made, place) => this.inner.children[place] !== made)) this.inner.append(...sorted);
    }
  }

  make(index) {
    const row = this.rows[index];
    const folds = row.open !== undefined;
    const classes = ["row", row.kind, row.weight && `has-${row.weight}`, row.marks?.includes(this.selected) && "is-selected", index === this.active && "is-active"];
    const made = h("div", {
      id: `${this.id}-${index}`, class: classes.filter(Boolean).join(" "), "data-index": index,
      ...(row.quiet ? { role: "none" } : { role: "treeitem", "aria-level": row.level + 1, "aria-expanded": folds ? String(row.open) : null }),
    }, h("span", { class: "gutter" }, (row.marks ?? []).slice(0, 2).map((mark) => h("button", { type: "button", tabindex: "-1", class: `mark is-${row.weightOf(mark)}`, "data-mark": mark, "aria-label": `change ${mark}` }, mark)),
      row.sign && h("span", { class: "plus" }, row.sign), row.marks?.length > 2 && h("span", { class: "more-marks" }, "+")),
    h("span", { class: "twist", "aria-hidden": "true" }, folds ? (row.open ? "▾" : "▸") : ""), this.draw(row));
    made.style.transform = `translateY(${index * HEIGHT + 6}px)`;
    this.made.set(index, made);
    return made;
  }

  click(event) {
    const mark = event.target.closest("[data-mark]");
    const made = event.target.closest(".row");
    if (!made) return;
    const index = Number(made.dataset.index);
    if (mark) { this.activate(index, false); this.follow?.(Number(mark.dataset.mark)); return; }
    this.activate(index, false);
    const row = this.rows[index];
    if (String(getSelection())) return;
    if (row.open !== undefined && event.target.closest(".twist, .foldable, .more")) this.toggle(row);
  }

  toggle(row) {
    this.fold(row);
    this.refresh();
  }

  activate(index, scroll = true) {
    this.made.get(this.active)?.classList.remove("is-active");
    this.active = index;
    if (scroll) this.reveal(index);
    this.made.get(index)?.classList.add("is-active");
    this.box.setAttribute("aria-activedescendant", `${this.id}-${index}`);
  }

  reveal(index) {
    const top = index * HEIGHT, { scrollTop, clientHeight } = this.box;
    if (top < scrollTop) this.box.scrollTop = top;
    else if (top > scrollTop + clientHeight - HEIGHT * 2) this.box.scrollTop = top - clientHeight + HEIGHT * 2;
    this.paint();
  }

  /** Find the next row that people can stand on. */
  next(step) {
    for (let index = this.active + step; index >= 0 && index < this.rows.length; index += step) if (!this.rows[index].quiet) return index;
    return this.active;
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const row = this.rows[this.active];
    const acts = {
      ArrowDown: () => this.activate(this.next(1)), ArrowUp: () => this.activate(this.next(-1)),
      Home: () => this.activate(0), End: () => this.activate(this.rows.length - 1),
      ArrowRight: () => row?.open === false && this.toggle(row), ArrowLeft: () => (row?.open ? this.toggle(row) : this.toParent()),
      Enter: () => (row?.marks?.length ? this.follow?.(row.marks[(row.marks.indexOf(this.selected) + 1) % row.marks.length]) : row?.open !== undefined && this.toggle(row)),
      " ": () => row?.open !== undefined && this.toggle(row),
    };
    if (!acts[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    acts[event.key]();
  }

  toParent() {
    const level = this.rows[this.active]?.level ?? 0;
    for (let index = this.active - 1; index >= 0; index -= 1) if (!this.rows[index].quiet && this.rows[index].level < level) { this.activate(index); return; }
  }

  /** Select a change: color its rows, and scroll to the first of them. Returns whether there is one. */
  select(mark) {
    this.selected = mark;
    const index = this.rows.findIndex((row) => row.marks?.includes(mark));
    for (const [place, made] of this.made) made.classList.toggle("is-selected", this.rows[place].marks?.includes(mark) ?? false);
    if (index < 0) return false;
    const top = index * HEIGHT;
    if (top < this.box.scrollTop || top > this.box.scrollTop + this.box.clientHeight - HEIGHT * 3) this.box.scrollTop = Math.max(0, top - this.box.clientHeight / 3);
    this.paint();
    this.activate(index, false);
    return true;
  }

  close() { this.sizes.disconnect(); fill(this.inner); this.made.clear(); }
}
