// The sliders with their typed values, and the coordinates of the points.

import { PUBLISHED } from "../method/published.js";
import { NUMBERS, numberFrom } from "../state.js";
import { shown } from "../words.js";

const LABELS = {
  alpha: "order alpha",
  beta: "beta, moving c",
  gamma: "gamma, moving c",
  betaFixed: "beta, fixed c",
  gammaFixed: "gamma, fixed c",
  lag: "lag",
  nodes: "nodes",
  eta: "eta",
  iterations: "iterations",
  stages: "stages",
};
const ABOUT_NUMBER = {
  alpha: "near 0: mean slope from c to x; near 1: slope at x",
  beta: "smoothing, for a moving terminal c",
  gamma: "for a moving terminal c; momentum if negative",
  betaFixed: "smoothing, for a fixed terminal c",
  gammaFixed: "for a fixed terminal c; pulls x to c if positive",
  lag: "moving terminal: x from lag iterations ago",
  nodes: "quadrature points between c and x",
  eta: "step size of fixed steps and of the published rules",
  iterations: "maximum of each method",
  stages: "of the adaptive order; gamma ends at 0",
};
const ABOUT_PAST = "past k: x from k iterations before the start";
const STEP_NAMES = { exact: "exact", fixed: "fixed", grid: "grid", armijo: "Armijo" };

export class Controls {
  constructor(container, message, change) {
    Object.assign(this, { message, change, rows: {} });
    container.append(this.row("alpha"));
    container.append(this.choice("given", "parametrise by", { gamma: "gamma", beta: "beta" }));
    const rows = ["gamma", "beta", "gammaFixed", "betaFixed", "lag", "nodes"];
    for (const name of rows) container.append(this.row(name));
    container.append(this.choice("step", "step", STEP_NAMES));
    for (const name of ["eta", "iterations", "stages"]) container.append(this.row(name));
  }

  row(name) {
    const { least, most, by, logarithmic } = NUMBERS[name];
    const row = made("div", { className: "row", id: `row-${name}` });
    const label = made("label", { htmlFor: name, textContent: LABELS[name] });
    const slider = made("input", { type: "range", id: name, min: least, max: most, step: by });
    const typed = made("input", { type: "text", inputMode: "decimal", id: `${name}-typed` });
    typed.setAttribute("aria-label", `${LABELS[name]}, as a number`);
    const about = made("small", { id: `${name}-about`, textContent: ABOUT_NUMBER[name] });
    for (const input of [slider, typed]) input.setAttribute("aria-describedby", about.id);
    slider.addEventListener("input", () => {
      const value = Number(slider.value);
      this.change({ [name]: logarithmic ? Number((10 ** value).toPrecision(3)) : value });
      this.say("");
    });
    typed.addEventListener("input", () => {
      const { value, sentence = "" } = numberFrom(name, typed.value);
      typed.setAttribute("aria-invalid", String(sentence !== ""));
      this.say(sentence);
      if (!sentence) this.change({ [name]: value });
    });
    // an invalid entry is replaced by the last valid number
    typed.addEventListener("blur", () => {
      typed.value = String(this.state[name]);
      typed.setAttribute("aria-invalid", "false");
      this.say("");
    });
    row.append(label, slider, typed, about);
    this.rows[name] = { row, slider, typed, about };
    return row;
  }

  choice(name, legend, options) {
    const row = made("div", { className: "row choice", id: `row-${name}` });
    const group = made("div", { className: "segments", role: "radiogroup" });
    group.setAttribute("aria-label", legend);
    for (const [value, text] of Object.entries(options)) {
      const input = made("input", { type: "radio", name, value, id: `${name}-${value}` });
      input.addEventListener("change", () => this.change({ [name]: value }));
      const label = made("label", { htmlFor: input.id, textContent: text });
      group.append(input, label);
    }
    row.append(made("span", { textContent: legend }), group);
    return row;
  }

  say(sentence) {
    this.message.textContent = sentence;
  }

  show(state) {
    this.state = state;
    const key = ["given", "step", "shown", ...Object.keys(this.rows)].map((name) => state[name]).join(" ");
    if (key === this.key) return;
    this.key = key;
    for (const [name, { row, slider, typed, about }] of Object.entries(this.rows)) {
      const value = state[name];
      const words = `${ABOUT_NUMBER[name]}${other(name, state)}`;
      if (about.textContent !== words) about.textContent = words;
      const { logarithmic } = NUMBERS[name];
      slider.value = logarithmic ? Math.log10(value) : value;
      if (document.activeElement !== typed) {
        typed.value = String(value);
        typed.setAttribute("aria-invalid", "false");
      }
      const hidden =
        (name === "eta" && state.step !== "fixed" && !state.shown.some((one) => one in PUBLISHED)) ||
        (name.startsWith("beta") && state.given !== "beta") ||
        (name.startsWith("gamma") && state.given !== "gamma");
      row.hidden = hidden;
    }
    for (const name of ["given", "step"]) {
      document.getElementById(`${name}-${state[name]}`).checked = true;
    }
  }
}

// Of beta and gamma, the one that was not given.
function other(name, { alpha, ...state }) {
  const between = (1 - alpha) / (2 - alpha);
  if (name.startsWith("gamma")) return `; beta = ${shown(state[name] + between, 3)}`;
  if (name.startsWith("beta")) return `; gamma = ${shown(state[name] - between, 3)}`;
  return "";
}

// The coordinates of the points, typed.
export class Points {
  constructor(container, move, toggle) {
    Object.assign(this, { container, move, inputs: new Map() });
    container.append(made("legend", { textContent: "points" }));
    this.atStart = made("input", { type: "checkbox", id: "at-start" });
    this.atStart.addEventListener("change", () => toggle(this.atStart.checked));
    const label = made("label", { className: "check" });
    label.append(this.atStart, "all past points equal the start");
    this.list = made("div", { className: "coordinates" });
    this.about = made("small", { textContent: ABOUT_PAST });
    container.append(this.list, this.about, label);
  }

  show(wanted, atStart) {
    this.atStart.checked = atStart;
    this.about.hidden = !wanted.some(({ kind }) => kind === "past");
    const ids = wanted.map(({ id }) => id).join(" ");
    if (ids !== this.ids) this.build(wanted);
    this.ids = ids;
    for (const { id, x } of wanted) {
      this.inputs.get(id).forEach((input, j) => {
        if (document.activeElement !== input) input.value = String(x[j]);
      });
    }
  }

  build(wanted) {
    this.list.replaceChildren();
    this.inputs.clear();
    for (const { id, label } of wanted) {
      const pair = ["x", "y"].map((name) => {
        const input = made("input", { type: "text", inputMode: "decimal", id: `${id}-${name}` });
        input.setAttribute("aria-label", `${label}, ${name}`);
        return input;
      });
      const read = () => {
        const x = pair.map(({ value }) => (value.trim() === "" ? NaN : Number(value.replace("−", "-"))));
        const bad = x.map((one) => !(Math.abs(one) <= 1e9));
        pair.forEach((input, j) => input.setAttribute("aria-invalid", String(bad[j])));
        if (!bad.includes(true)) this.move(id, x);
      };
      for (const input of pair) input.addEventListener("input", read);
      this.list.append(made("span", { textContent: label }), ...pair);
      this.inputs.set(id, pair);
    }
  }
}

export function made(tag, fields) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(fields)) {
    if (name === "role") element.setAttribute(name, value);
    else element[name] = value;
  }
  return element;
}
