// A formula as tokens: numbers, names and signs, each with the place where it stands.

const LONGEST = 500; // characters

// An error at a position of the formula; positions are counted from 1.
export class FormulaError extends Error {
  constructor(place, sentence) {
    super(`Position ${place}: ${sentence}`);
    this.name = "FormulaError";
    this.place = place;
  }
}

const NUMBER = /^(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?/;
const NAME = /^[A-Za-z_][A-Za-z_0-9]*/;
const SIGNS = "+-*/^(),";
// what people paste from papers
const ALIKE = { "−": "-", "–": "-", "·": "*", "×": "*", "²": "^2", "³": "^3", "π": "pi" };

export function tokens(text) {
  if (text.length > LONGEST) {
    throw new FormulaError(LONGEST + 1, `a formula has at most ${LONGEST} characters.`);
  }
  const found = [];
  let at = 0;
  while (at < text.length) {
    const rest = text.slice(at);
    const place = at + 1;
    const number = NUMBER.exec(rest);
    const name = NAME.exec(rest);
    if (/^\s/.test(rest)) {
      at += 1;
    } else if (number) {
      const value = Number(number[0]);
      if (!Number.isFinite(value)) throw new FormulaError(place, `${number[0]} is too large.`);
      found.push({ kind: "number", text: number[0], value, place });
      at += number[0].length;
    } else if (name) {
      found.push({ kind: "name", text: name[0], place });
      at += name[0].length;
    } else if (rest.startsWith("**")) {
      found.push({ kind: "sign", text: "^", place });
      at += 2;
    } else if (SIGNS.includes(rest[0])) {
      found.push({ kind: "sign", text: rest[0], place });
      at += 1;
    } else if (Object.hasOwn(ALIKE, rest[0])) {
      for (const token of tokens(ALIKE[rest[0]])) found.push({ ...token, place });
      at += 1;
    } else {
      const sign = String.fromCodePoint(rest.codePointAt(0));
      throw new FormulaError(place, `“${sign}” is not allowed in a formula.`);
    }
  }
  return found;
}
