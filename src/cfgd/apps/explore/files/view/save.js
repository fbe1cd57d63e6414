// The map as an SVG or PNG file, and the paths as a CSV file.

import { pointShown, NAMES } from "../words.js";
import { drawContours, graded, heights } from "./contours.js";
import { drawAxes, drawPaths, halo, mapFrame } from "./paths.js";
import { SvgContext } from "./svg_context.js";

const RATIO = 2; // pixels of the file for a pixel of the page, as on a sharp screen
const RADIUS = 6; // pixels of a point
const KEY_LINE = 18; // pixels between two lines of the key
const KEY_STROKE = 26; // pixels of a line in the key

export function saveMap(kind, scene, style) {
  if (kind === "svg") {
    save("cfgd.svg", new Blob([svgOf(scene, style)], { type: "image/svg+xml" }));
  } else {
    pngOf(scene, style).toBlob((blob) => save("cfgd.png", blob), "image/png");
  }
}

export function savePaths(runs) {
  save("cfgd.csv", new Blob([csvOf(runs)], { type: "text/csv" }));
}

// Return the points of all runs, with a row for each iteration of a method.
function csvOf(runs) {
  const rows = [...runs].flatMap(([name, { path, values }]) =>
    path.map(([x, y], k) => [NAMES[name], k, x, y, values[k]].join(",")),
  );
  return ["method,iteration,x,y,value", ...rows, ""].join("\n");
}

function pngOf(scene, style) {
  const canvas = contoursOf(scene, style);
  const context = canvas.getContext("2d");
  context.setTransform(RATIO, 0, 0, RATIO, 0, 0);
  drawAll(context, scene, style);
  return canvas;
}

// Return the text of an SVG file: the contours are an image in it, all else is lines and text.
function svgOf(scene, style) {
  const { width, height } = scene.size;
  const root = document.getElementById("blank").cloneNode();
  for (const name of ["id", "hidden"]) root.removeAttribute(name);
  root.setAttribute("viewBox", `0 0 ${width} ${height}`);
  root.setAttribute("width", width);
  root.setAttribute("height", height);
  const context = new SvgContext(root);
  context.image(contoursOf(scene, style).toDataURL("image/png"), width, height);
  drawAll(context, scene, style);
  return new XMLSerializer().serializeToString(root);
}

function contoursOf({ objective, view, size }, style) {
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(size.width * RATIO);
  canvas.height = Math.round(size.height * RATIO);
  const context = canvas.getContext("2d");
  drawContours({ context, canvas }, graded(heights(objective, view)), style);
  return canvas;
}

function drawAll(context, scene, style) {
  const { width, height } = scene.size;
  const sheet = { context, width, height };
  drawAxes(sheet, scene.view, style, scene.minima);
  drawPaths(sheet, scene.view, style, scene);
  drawPoints(context, mapFrame(scene.size, scene.view), style, scene.points);
  drawKey(context, style, scene.paths);
}

// The points that a user can move, which the page draws as buttons.
function drawPoints(context, frame, style, points) {
  context.font = `600 ${12 * style.scale}px ${style.font}`;
  context.textAlign = "left";
  context.textBaseline = "middle";
  for (const { kind, label, x } of points) {
    const [at, down] = [frame.x(x[0]), frame.y(x[1])];
    context.strokeStyle = pointColour(kind, style);
    context.fillStyle = style.page;
    context.lineWidth = 2.5;
    context.beginPath();
    outline(context, kind, at, down);
    context.fill();
    context.stroke();
    context.fillStyle = style.ink;
    halo(context, style, `${label} ${pointShown(x)}`, at + 13, down);
  }
}

// As the style sheet draws the buttons.
function pointColour(kind, { ink, strokes }) {
  return { start: ink, terminal: strokes.nonadaptive.colour, past: strokes.terminal.colour }[kind];
}

// A circle for the start, a square for the terminal, a diamond for a past point.
function outline(context, kind, at, down) {
  if (kind === "start") {
    context.arc(at, down, RADIUS, 0, 2 * Math.PI);
    return;
  }
  const turned = kind === "past" ? [[0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]] : [[-1, -1], [1, -1], [1, 1], [-1, 1]];
  const corners = [...turned, turned[0], turned[1]]; // the first side twice, which closes the corner
  corners.forEach(([right, below], i) => {
    const place = [at + RADIUS * right, down + RADIUS * below];
    if (i === 0) context.moveTo(...place);
    else context.lineTo(...place);
  });
}

// Names and lines of the methods, in the upper left corner.
function drawKey(context, style, paths) {
  context.font = `${12 * style.scale}px ${style.font}`;
  context.textAlign = "left";
  context.textBaseline = "middle";
  paths.forEach(([name, path], i) => {
    const { colour, dash, width } = style.strokes[name];
    const down = 16 + i * KEY_LINE * style.scale;
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.setLineDash(dash);
    context.beginPath();
    context.moveTo(44, down);
    context.lineTo(44 + KEY_STROKE, down);
    context.stroke();
    context.setLineDash([]);
    context.fillStyle = style.ink;
    halo(context, style, `${NAMES[name]}: ${path.length - 1} iterations`, 52 + KEY_STROKE, down);
  });
}

function save(name, blob) {
  const link = document.createElement("a");
  const url = URL.createObjectURL(blob);
  link.setAttribute("href", url);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60000); // milliseconds: the download has begun by then
}
