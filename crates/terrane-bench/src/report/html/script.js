/*<![CDATA[*/
"use strict";
// Engines are shown and hidden by a class of the body; the style sheet has a rule for each.
for (const box of document.querySelectorAll("input[data-engine]")) {
  box.addEventListener("change", () => {
    document.body.classList.toggle("hide-" + box.dataset.engine, !box.checked);
  });
}
// The values under the pointer, read back from the lines as they are drawn.
const tip = document.getElementById("tip");
function units(value) {
  for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (value >= size) return (value / size).toPrecision(3) + unit;
  }
  return value.toPrecision(3);
}
function show(svg, event) {
  const [left, right, top, bottom] = svg.dataset.box.split(" ").map(Number);
  const [xMax, yMax] = svg.dataset.ends.split(" ").map(Number);
  const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  const share = Math.min(1, Math.max(0, (point.x - left) / (right - left)));
  tip.replaceChildren();
  const head = document.createElement("b");
  head.textContent = (share * xMax).toPrecision(3) + " s";
  tip.append(head);
  for (const line of svg.querySelectorAll("polyline[data-name]")) {
    if (getComputedStyle(line).display === "none") continue;
    let near = null;
    for (const at of line.points) {
      if (near === null || Math.abs(at.x - point.x) < Math.abs(near.x - point.x)) near = at;
    }
    if (near === null || Math.abs(near.x - point.x) > 12) continue;
    const row = document.createElement("div");
    row.style.color = getComputedStyle(line).stroke;
    row.textContent = line.dataset.name + "  " + units((bottom - near.y) / (bottom - top) * yMax) + "/s";
    tip.append(row);
  }
  tip.hidden = false;
  const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
  tip.style.left = Math.min(event.pageX + 14, room) + "px";
  tip.style.top = (event.pageY + 14) + "px";
}
for (const svg of document.querySelectorAll("svg.over-time")) {
  svg.addEventListener("pointermove", (event) => show(svg, event));
  svg.addEventListener("pointerleave", () => { tip.hidden = true; });
}
/*]]>*/
