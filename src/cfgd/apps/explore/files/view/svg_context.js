// What the drawings of the map use of a canvas context, recorded as elements of an SVG.

const ANCHORS = { left: "start", center: "middle", right: "end" };
// where the middle and the lower edge of a line of text are, in heights of a letter above its base line
const BASELINES = { middle: 0.35, bottom: -0.2, top: 0.8 };

export class SvgContext {
  constructor(root) {
    Object.assign(this, { root, stack: [], path: [], dash: [] });
    Object.assign(this, { strokeStyle: "", fillStyle: "", lineWidth: 1, globalAlpha: 1 });
    Object.assign(this, { font: "", textAlign: "left", textBaseline: "middle", lineJoin: "round" });
  }

  save() {
    const { strokeStyle, fillStyle, lineWidth, globalAlpha, dash } = this;
    this.stack.push({ strokeStyle, fillStyle, lineWidth, globalAlpha, dash });
  }

  restore() {
    Object.assign(this, this.stack.pop());
  }

  setLineDash(dash) {
    this.dash = dash;
  }

  beginPath() {
    this.path = [];
  }

  moveTo(x, y) {
    this.path.push(`M${short(x)} ${short(y)}`);
  }

  lineTo(x, y) {
    this.path.push(`L${short(x)} ${short(y)}`);
  }

  // a whole circle, the only arc of the map
  arc(x, y, r) {
    const half = (side) => `A${short(r)} ${short(r)} 0 1 0 ${short(x + side * r)} ${short(y)}`;
    this.path.push(`M${short(x - r)} ${short(y)}`, half(1), half(-1));
  }

  stroke() {
    this.add("path", { d: this.path.join(""), fill: "none", ...this.lines() });
  }

  fill() {
    this.add("path", { d: this.path.join(""), fill: this.fillStyle, opacity: this.globalAlpha });
  }

  fillText(text, x, y) {
    this.text(text, x, y, { fill: this.fillStyle, opacity: this.globalAlpha });
  }

  strokeText(text, x, y) {
    this.text(text, x, y, { fill: "none", ...this.lines() });
  }

  image(address, width, height) {
    this.add("image", { href: address, width, height });
  }

  lines() {
    return {
      stroke: this.strokeStyle,
      "stroke-width": this.lineWidth,
      "stroke-dasharray": this.dash.join(" "),
      "stroke-linejoin": this.lineJoin,
      opacity: this.globalAlpha,
    };
  }

  text(text, x, y, attributes) {
    const size = parseFloat(this.font.match(/([\d.]+)px/)[1]);
    const down = y + BASELINES[this.textBaseline] * size;
    const where = { x: short(x), y: short(down), "text-anchor": ANCHORS[this.textAlign] };
    this.add("text", { ...where, style: `font: ${this.font}`, ...attributes }).textContent = text;
  }

  add(name, attributes) {
    const element = document.createElementNS(this.root.namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) {
      if (value !== "") element.setAttribute(key, value);
    }
    this.root.append(element);
    return element;
  }
}

const short = (pixel) => Number(pixel.toFixed(2));
