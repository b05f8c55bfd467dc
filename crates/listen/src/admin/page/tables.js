// Tables whose rows change. The table itself stays, so that focus and scroll position do.

import { element } from "./dom.js";

export class Table {
  /**
   * `columns` have a `title`, `cell(row)`, which returns a text, a number as text, a private value
   * or an element, and `isNumber`.
   */
  constructor(place, caption, columns, none) {
    this.columns = columns;
    this.none = none;
    const heads = columns.map(({ title, isNumber }) =>
      element("th", { scope: "col", class: isNumber ? "number" : undefined }, title));
    this.body = element("tbody");
    this.table = element("table", {},
      element("caption", {}, caption), element("thead", {}, element("tr", {}, heads)), this.body);
    this.scroll = element("div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, this.table);
    this.note = element("p", { class: "note" });
    place.replaceChildren(this.scroll, this.note);
  }

  update(rows, note = "") {
    const isEmpty = rows.length === 0;
    this.scroll.hidden = isEmpty;
    this.note.textContent = isEmpty ? this.none : note;
    this.note.hidden = this.note.textContent === "";
    this.body.replaceChildren(...rows.map((row) => element("tr", {}, this.columns.map((column) =>
      cell(column, column.cell(row))))));
  }
}

function cell({ isNumber }, value) {
  if (isPrivate(value)) return privateCell(value);
  return element("td", { class: isNumber ? "number" : undefined }, value);
}

function isPrivate(value) {
  const isObject = typeof value === "object" && value !== null && !(value instanceof Node);
  return isObject && "bytes" in value;
}

/** A cell of a key or another private value. */
function privateCell(value) {
  if ("hidden" in value) {
    const unit = value.bytes === 1 ? "byte" : "bytes";
    const text = `#${value.hidden}, ${value.bytes} ${unit}`;
    return element("td", { class: "text" },
      element("span", { class: "hidden", title: "hidden: enter the token above" }, text));
  }
  return element("td", { class: "text", title: value.text }, value.text);
}
