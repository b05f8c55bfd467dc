// Builds elements. Text is only ever set as text, never parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

/** Creates an element with attributes and children; a child that is no node becomes text. */
export function element(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** Creates an element of SVG. */
export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null) node.setAttribute(name, value);
  }
  const isNode = (child) => child instanceof Node;
  node.append(...children.flat(Infinity).map((child) => (isNode(child) ? child : String(child))));
  return node;
}

/** Replaces the text of a node if it differs, so that screen readers hear changes only. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Creates a section with a heading. Returns it and the place for its content. */
export function section(id, title, size = "") {
  const heading = `${id}-heading`;
  const hint = element("small");
  const body = element("div");
  const root = element(
    "section",
    { id, class: size, "aria-labelledby": heading },
    element("h2", { id: heading }, title, hint),
    body,
  );
  return { root, body, hint };
}
