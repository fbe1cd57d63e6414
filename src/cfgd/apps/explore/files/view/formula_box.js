// The function: from the list, or typed; a formula that cannot be read gives a message with the place.

import { parse } from "../formula/parser.js";
import { KNOWN } from "../known.js";
import { ofKnown } from "../state.js";
import { made } from "./controls.js";

export class FormulaBox {
  constructor(change) {
    this.list = document.getElementById("known");
    this.input = document.getElementById("formula");
    this.message = document.getElementById("formula-text");
    for (const { id, name } of KNOWN) this.list.append(made("option", { value: id, textContent: name }));
    this.list.append(made("option", { value: "", textContent: "Your own formula" }));
    this.list.addEventListener("change", () => {
      const known = KNOWN.find(({ id }) => id === this.list.value);
      if (known) change(ofKnown(known));
      else this.input.focus();
      this.say("");
    });
    this.input.addEventListener("input", () => this.read(change));
  }

  read(change) {
    const formula = this.input.value;
    try {
      parse(formula);
    } catch (error) {
      this.say(error.message, error.place);
      return;
    }
    this.say("");
    const known = KNOWN.find((one) => one.formula === formula);
    change({ formula, known: known ? known.id : "" });
  }

  say(sentence, place) {
    this.bad = sentence !== "";
    this.input.setAttribute("aria-invalid", String(this.bad));
    this.message.replaceChildren(sentence);
    if (!place) return;
    const text = this.input.value;
    const where = made("code", {});
    where.append(
      text.slice(0, place - 1),
      made("mark", { textContent: text[place - 1] ?? "\u00a0" }),
      text.slice(place),
    );
    this.message.append(made("br", {}), where);
  }

  // what could not be read is forgotten
  clear() {
    this.say("");
    this.input.blur();
  }

  show({ known, formula }, value) {
    this.list.value = known;
    if (this.bad) return;
    if (document.activeElement !== this.input && this.input.value !== formula) this.input.value = formula;
    const words = Number.isFinite(value) ? "" : "f is not a number at the start: move the start.";
    if (this.message.textContent !== words) this.message.textContent = words;
  }
}
