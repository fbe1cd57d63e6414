// The table of methods: which are shown, and the status and numbers of each run.

import { METHODS } from "../method/presets.js";
import { ABOUT, STATUSES, NAMES, shown } from "../words.js";
import { made } from "./controls.js";

export class Legend {
  constructor(body, toggle) {
    this.rows = {};
    for (const name of METHODS) {
      const row = made("tr", { id: `method-${name}` });
      const box = made("input", { type: "checkbox", id: `show-${name}` });
      box.addEventListener("change", () => toggle(name, box.checked));
      const label = made("label", { htmlFor: box.id });
      const stroke = made("canvas", { width: 44, height: 16, className: "stroke" });
      label.append(box, stroke, made("b", { textContent: NAMES[name] }));
      const kinds = ["method", "ending", "number", "number", "number gradients", "about"];
      const cells = kinds.map((className) => made("td", { className }));
      cells[0].append(label);
      cells.at(-1).textContent = ABOUT[name];
      row.append(...cells);
      body.append(row);
      const [, ending, iterations, value, gradients] = cells;
      this.rows[name] = { row, box, stroke, ending, iterations, value, gradients };
    }
  }

  strokes(style) {
    for (const [name, { stroke }] of Object.entries(this.rows)) {
      const context = stroke.getContext("2d");
      const { colour, dash, width } = style.strokes[name];
      context.setTransform(2, 0, 0, 2, 0, 0);
      context.clearRect(0, 0, 22, 8);
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.setLineDash(dash);
      context.beginPath();
      context.moveTo(0, 4);
      context.lineTo(22, 4);
      context.stroke();
    }
  }

  show(names, runs) {
    for (const [name, cells] of Object.entries(this.rows)) {
      const { row, box, ending, iterations, value, gradients } = cells;
      const run = runs.get(name);
      box.checked = names.includes(name);
      row.classList.toggle("off", !run);
      written(iterations, run ? String(run.path.length - 1) : "");
      written(value, run ? shown(run.values.at(-1)) : "");
      written(ending, run ? STATUSES[run.status] : "");
      written(gradients, run ? String(run.evaluations) : "");
      row.dataset.status = run ? run.status : "";
    }
  }
}

// Write a text only if it changed: layout is the most expensive part of a frame.
function written(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
