// Tokens as a tree, by recursive descent; nothing of the text is ever run.
//
//   sum     = product (("+" | "-") product)*
//   product = signed ((("*" | "/") signed) | power)*        2x and 2(x + 1) are products, too
//   signed  = ("+" | "-") signed | power
//   power   = atom ("^" signed)?                            so -x^2 is -(x^2), and 2^-x may stand
//   atom    = number | x | y | pi | e | name "(" sum ")" | "(" sum ")"

import { CONSTANTS, FUNCTIONS } from "./functions.js";
import { FormulaError, tokens } from "./tokens.js";

const DEEPEST = 60; // brackets in brackets

export function parse(text) {
  const parser = new Parser(text);
  const tree = parser.sum();
  const extra = parser.next();
  if (extra) throw new FormulaError(extra.place, `${quoted(extra)} is not expected here.`);
  if (!parser.varies) throw new FormulaError(1, "the formula has neither x nor y in it.");
  return tree;
}

const quoted = (token) => (token ? `“${token.text}”` : "the end");

class Parser {
  constructor(text) {
    this.tokens = tokens(text);
    this.at = 0;
    this.end = text.length + 1;
    this.depth = 0;
    this.varies = false;
  }

  next() {
    return this.tokens[this.at];
  }

  take(signs) {
    const token = this.next();
    if (!token || token.kind !== "sign" || !signs.includes(token.text)) return null;
    this.at += 1;
    return token;
  }

  place() {
    return this.next()?.place ?? this.end;
  }

  sum() {
    let left = this.product();
    for (let sign; (sign = this.take("+-")); ) {
      left = { op: sign.text, left, right: this.product() };
    }
    return left;
  }

  product() {
    let left = this.signed();
    for (;;) {
      const sign = this.take("*/");
      if (sign) left = { op: sign.text, left, right: this.signed() };
      else if (this.startsAtom()) left = { op: "*", left, right: this.power() };
      else return left;
    }
  }

  startsAtom() {
    const token = this.next();
    return Boolean(token) && (token.kind !== "sign" || token.text === "(");
  }

  // Every recursion comes through here: brackets, signs and powers of powers.
  signed() {
    this.depth += 1;
    if (this.depth > DEEPEST) {
      throw new FormulaError(this.place(), `more than ${DEEPEST} nested brackets or signs.`);
    }
    const sign = this.take("+-");
    let tree = sign ? this.signed() : this.power();
    if (sign && sign.text === "-") tree = { op: "negative", of: tree };
    this.depth -= 1;
    return tree;
  }

  power() {
    const base = this.atom();
    return this.take("^") ? { op: "^", left: base, right: this.signed() } : base;
  }

  atom() {
    const token = this.next();
    if (this.take("(")) return this.inBrackets(token);
    if (!token || token.kind === "sign") {
      const wanted = "expected a number, x, y, a function or “(”";
      throw new FormulaError(this.place(), `${wanted}, found ${quoted(token)}.`);
    }
    this.at += 1;
    return token.kind === "number" ? { op: "number", value: token.value } : this.named(token);
  }

  inBrackets(opening) {
    const inside = this.sum();
    if (!this.take(")")) {
      const wanted = `expected “)” for the “(” at position ${opening.place}`;
      throw new FormulaError(this.place(), `${wanted}, found ${quoted(this.next())}.`);
    }
    return inside;
  }

  named({ text, place }) {
    if (text === "x" || text === "y") {
      this.varies = true;
      return { op: text };
    }
    if (Object.hasOwn(CONSTANTS, text)) return { op: "number", value: CONSTANTS[text] };
    if (!Object.hasOwn(FUNCTIONS, text)) {
      const product = /^[xy]+$/.test(text) ? `; for a product write ${[...text].join("*")}` : "";
      const known = `x, y, ${Object.keys(CONSTANTS).join(", ")} and ${Object.keys(FUNCTIONS).join(", ")}`;
      throw new FormulaError(place, `“${text}” is unknown${product || `; the known names are ${known}`}.`);
    }
    const opening = this.next();
    if (!this.take("(")) {
      throw new FormulaError(
        this.place(),
        `expected “(” after ${text}, found ${quoted(opening)}.`,
      );
    }
    return { op: text, of: this.inBrackets(opening) };
  }
}
