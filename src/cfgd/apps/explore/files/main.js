// The explorer: the state of the page, and its drawing. Only what has changed is computed again.

import { gaussJacobi } from "./calculus/quadrature.js";
import { smoothing } from "./calculus/smoothing.js";
import { Objective } from "./formula/objective.js";
import { fractional, runMethod } from "./method/presets.js";
import { NEEDS } from "./method/needs.js";
import { FRACTIONAL, DEFAULTS, linkOf, ofKnown, ofLink, pastOf, settingOf } from "./state.js";
import { drawChart } from "./view/chart.js";
import { Sheet } from "./view/canvas.js";
import { drawContours, graded, heights } from "./view/contours.js";
import { Controls, Points, made } from "./view/controls.js";
import { FormulaBox } from "./view/formula_box.js";
import { Handles } from "./view/handles.js";
import { Legend } from "./view/legend.js";
import { drawingStyle } from "./view/drawing_style.js";
import { MapView, equalised } from "./view/map_view.js";
import { saveMap, savePaths } from "./view/save.js";
import { drawAxes, drawPaths, mapFrame } from "./view/paths.js";
import { drawSlice, sliceOf } from "./view/slice.js";
import { themed } from "./view/theme.js";
import { KNOWN } from "./known.js";
import { NAMES, pointShown, shown } from "./words.js";

const element = (id) => document.getElementById(id);
const TEXT_WAITS = 80; // milliseconds between two updates of the texts
const LINK_WAITS = 250; // milliseconds after the last change

class Explorer {
  constructor() {
    this.state = ofLink(location.hash);
    this.cache = new Map(); // runs, with the numbers that they depend on
    this.drawnMap = "";
    const change = (part) => this.change(part);
    this.formula = new FormulaBox((part) => this.change(part));
    this.controls = new Controls(element("numbers"), element("number-text"), change);
    this.points = new Points(element("points"), (id, x) => this.move(id, x), (atStart) => this.change({ atStart }));
    this.legend = new Legend(element("legend"), (name, on) => this.toggle(name, on));
    this.map = new MapView(element("map"), () => this.view(), (view) => this.change({ view }));
    this.handles = new Handles(element("handles"), () => this.frame, (id, x) => this.move(id, x));
    for (const name of FRACTIONAL) element("of").append(made("option", { value: name, textContent: NAMES[name] }));
    for (const name of ["of", "along"]) {
      element(name).addEventListener("change", () => this.change({ [name]: element(name).value }));
    }
    for (const className of ["f", "F", "nodes"]) element("slice-text").append(made("li", { className }));
    element("k").addEventListener("input", () => this.change({ k: Number(element("k").value) }));
    element("reset").addEventListener("click", () => this.startOver());
    element("whole").addEventListener("click", () => this.showAll());
    element("link").addEventListener("click", () => this.copyLink());
    element("equal").addEventListener("change", () => this.change({ equal: element("equal").checked }));
    for (const kind of ["svg", "png"]) {
      element(`save-${kind}`).addEventListener("click", () => saveMap(kind, this.scene(), this.style));
    }
    element("save-csv").addEventListener("click", () => savePaths(this.runs));
    element("map").addEventListener("pointermove", (event) => this.readAt(event));
    const sheets = ["contours", "paths", "chart", "slice"];
    this.sheets = Object.fromEntries(
      sheets.map((id) => [id, new Sheet(element(id), () => this.restyle())]),
    );
    themed(element("theme"), () => this.restyle());
    window.addEventListener("hashchange", () => {
      this.formula.clear();
      this.change(ofLink(location.hash));
    });
    this.restyle();
  }

  restyle() {
    this.style = drawingStyle(document.documentElement);
    this.legend.strokes(this.style);
    this.drawnMap = "";
    this.requestDraw();
  }

  change(part) {
    this.state = { ...this.state, ...part };
    clearTimeout(this.linking);
    this.linking = setTimeout(() => this.writeLink(), LINK_WAITS);
    this.requestDraw();
  }

  move(id, x) {
    if (id === "start" || id === "terminal") this.change({ [id]: x });
    else {
      const past = pastOf(this.state);
      past[Number(id.split("-")[1]) - 1] = x;
      this.change({ past });
    }
  }

  toggle(name, on) {
    const rest = this.state.shown.filter((one) => one !== name);
    this.change({ shown: on ? [...rest, name] : rest });
  }

  startOver() {
    this.formula.clear();
    const known = KNOWN.find(({ id }) => id === this.state.known);
    const { formula, view, start, terminal, past } = this.state;
    this.change({ ...DEFAULTS, ...(known ? ofKnown(known) : { formula, view, start, terminal, past, known: "" }) });
  }

  showAll() {
    const known = KNOWN.find(({ id }) => id === this.state.known);
    this.map.fit(this.movable().map(({ x }) => x), known && known.view);
  }

  async copyLink() {
    this.writeLink();
    const button = element("link");
    try {
      await navigator.clipboard.writeText(location.href);
      button.textContent = "Copied";
    } catch {
      button.textContent = "In the address bar";
    }
    setTimeout(() => { button.textContent = "Copy link"; }, 1500);
  }

  writeLink() {
    clearTimeout(this.linking);
    history.replaceState(null, "", linkOf(this.state));
  }

  // Return the points that can be dragged: those that a shown method needs.
  movable() {
    const { start, terminal, shown: names, atStart } = this.state;
    const found = [{ id: "start", kind: "start", label: "start", x: start }];
    const hasFixedTerminal = names.includes("nonadaptive") || names.includes("order");
    if (hasFixedTerminal) found.push({ id: "terminal", kind: "terminal", label: "terminal", x: terminal });
    if (names.includes("terminal") && !atStart) {
      pastOf(this.state).forEach((x, i) => {
        found.push({ id: `past-${i + 1}`, kind: "past", label: `past ${i + 1}`, x });
      });
    }
    return found;
  }

  run(name) {
    const setting = settingOf(name, this.state);
    const key = JSON.stringify(NEEDS[name].map((field) => setting[field]));
    const cached = this.cache.get(name);
    if (cached && cached.key === key) return cached.run;
    const run = runMethod(name, this.objective, setting);
    this.cache.set(name, { key, run });
    return run;
  }

  requestDraw() {
    if (this.isRequested) return;
    this.isRequested = true;
    requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.isRequested = false;
    const { state, style } = this;
    if (!this.objective || this.objective.formula !== state.formula) {
      this.objective = new Objective(state.formula);
    }
    const runs = new Map(state.shown.map((name) => [name, this.run(name)]));
    const known = KNOWN.find(({ id }) => id === state.known);
    this.runs = runs;
    this.drawMap();
    this.drawValues(known, runs);
    this.drawSlice();
    this.handles.place(this.movable());
    this.controls.show(state);
    if (!this.textTimer) this.textTimer = setTimeout(() => this.showText(), this.drawn ? TEXT_WAITS : 0);
    if (!this.drawn) this.drawn = performance.now();
  }

  // Write the numbers as text, less often than the drawing: the layout of text takes longer than a
  // run.
  showText() {
    this.textTimer = 0;
    const { state } = this;
    const known = KNOWN.find(({ id }) => id === state.known);
    this.formula.show(state, this.objective.value(state.start));
    this.legend.show(state.shown, this.runs);
    this.points.show(this.movable(), state.atStart);
    element("equal").checked = state.equal;
    this.showValues(known);
    this.showSliceText();
  }

  // Return the part of the plane that is drawn.
  view() {
    return this.state.equal ? equalised(this.state.view, this.sheets.paths) : this.state.view;
  }

  // Return all that the map shows.
  scene() {
    const { of, shown: names, known: id } = this.state;
    const known = KNOWN.find((one) => one.id === id);
    const { x, c } = this.sliceAt();
    return {
      objective: this.objective,
      view: this.view(),
      size: this.sheets.paths,
      minima: known ? known.minima : [],
      paths: [...this.runs].map(([name, { path }]) => [name, path]),
      mark: names.includes(of) ? { x, c, name: of } : null,
      points: this.movable(),
    };
  }

  drawMap() {
    const scene = this.scene();
    const { view } = scene;
    const above = this.sheets.paths;
    const key = `${this.state.formula} ${view}`;
    if (key !== this.drawnMap) {
      const below = this.sheets.contours;
      drawContours(below, graded(heights(this.objective, view)), this.style);
      drawAxes(below, view, this.style, scene.minima);
      this.drawnMap = key;
    }
    this.frame = mapFrame(above, view);
    above.context.clearRect(0, 0, above.width, above.height);
    drawPaths(above, view, this.style, scene);
  }

  drawValues(known, runs) {
    const values = [...runs.values()].flatMap((run) => run.values.filter(Number.isFinite));
    this.least = known ? known.least : Math.min(...values);
    drawChart(this.sheets.chart, this.style, [...runs], this.least, this.state.k);
  }

  showValues(known) {
    const words = known ? "f* = the known minimum" : "f* = the lowest value of these runs";
    written("chart-text", Number.isFinite(this.least) ? `f − f*, ${words}, ${shown(this.least)}` : "");
  }

  // Return the place of the slice: x_k, its terminal, and the order there.
  sliceAt() {
    const { of, k } = this.state;
    const { path } = this.run(of);
    const at = Math.min(k, path.length - 1);
    const method = fractional(of, settingOf(of, this.state));
    return { x: path[at], c: method.terminalAt(at, path), at, last: path.length - 1, ...method.orders(at) };
  }

  drawSlice() {
    const { of, along } = this.state;
    const view = this.view();
    const place = this.sliceAt();
    const j = along === "x" ? 0 : 1;
    const span = view[2 * j + 1] - view[2 * j];
    this.slice = { ...sliceOf(this.objective, place, j, span), place };
    drawSlice(this.sheets.slice, this.style, this.slice, of);
  }

  showSliceText() {
    const { of, along } = this.state;
    const { slope, fractional: d, place } = this.slice;
    element("of").value = of;
    element("along").value = along;
    element("k").max = Math.max(place.last, 1);
    element("k").value = place.at;
    written("k-shown", String(place.at));
    element("slice-text").style.setProperty("--method", this.style.strokes[of].colour);
    const texts = [`slope of f: ${shown(slope)}`, `slope of F, the direction: ${shown(d)}`,
      `${place.nodes} nodes between c and x (dotted on the map), weights as bars`];
    [...element("slice-text").children].forEach((item, i) => {
      if (item.textContent !== texts[i]) item.textContent = texts[i];
    });
  }

  readAt(event) {
    if (event.pointerType !== "mouse" || !this.frame) return;
    const box = element("map").getBoundingClientRect();
    const x = this.map.at(event.clientX - box.left, event.clientY - box.top);
    const short = x.map((one) => Number(one.toPrecision(3)));
    written("here", `f${pointShown(short)} = ${shown(this.objective.value(x))}`);
  }
}

function written(id, text) {
  if (element(id).textContent !== text) element(id).textContent = text;
}

const explorer = new Explorer();

// For the console and the tests: the numbers that are drawn, and those of any other setting.
window.explorer = {
  get state() { return explorer.state; },
  get runs() { return Object.fromEntries(explorer.runs); },
  get slice() { return explorer.slice; },
  get drawn() { return explorer.drawn; },
  get least() { return explorer.least; },
  get isIdle() { return Boolean(explorer.drawn) && !explorer.isRequested && !explorer.textTimer; },
  run: (name, formula, setting) => runMethod(name, new Objective(formula), setting),
  gaussJacobi,
  along: (formula, x, v) => ({ ...new Objective(formula).along(x, v) }),
  smoothing: (formula, x, j, alpha, beta, c, zs) => {
    const objective = new Objective(formula);
    return zs.map(smoothing((t) => objective.slice(x, j, t), alpha, beta, c));
  },
};
