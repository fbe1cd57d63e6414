// The colours and lines of the drawings, read from the style sheet.

const STROKES = {
  gradient: { colour: "--ink", dash: [7, 4], width: 1.6 },
  nonadaptive: { colour: "--blue", dash: [], width: 2 },
  terminal: { colour: "--orange", dash: [], width: 2.6 },
  order: { colour: "--green", dash: [9, 3, 2, 3], width: 2 },
  auto: { colour: "--purple", dash: [2, 3], width: 2.6 },
  wang: { colour: "--yellow", dash: [], width: 2 },
  wei: { colour: "--yellow", dash: [2, 3], width: 2 },
  herrera: { colour: "--blue", dash: [9, 3, 2, 3], width: 1.6 },
  liu: { colour: "--green", dash: [2, 3], width: 1.6 },
  fracAdam: { colour: "--purple", dash: [9, 3], width: 1.6 },
  xie: { colour: "--orange", dash: [2, 3], width: 1.6 },
};

export function drawingStyle(element) {
  const computed = getComputedStyle(element);
  const colour = (name) => computed.getPropertyValue(name).trim();
  const strokes = Object.fromEntries(
    Object.entries(STROKES).map(([name, stroke]) => [
      name,
      { ...stroke, colour: colour(stroke.colour) },
    ]),
  );
  const names = ["ink", "soft", "faint", "page", "card", "low", "high", "contour", "yellow"];
  return {
    strokes,
    scale: parseFloat(computed.fontSize) / 16, // letters are larger on a wall
    font: computed.fontFamily,
    inked: 0.6, // how much of a level line's colour is on the map
    ...Object.fromEntries(names.map((name) => [name, colour(`--${name}`)])),
  };
}

// "#rrggbb" as three numbers
export const channels = (code) => [1, 3, 5].map((i) => parseInt(code.slice(i, i + 2), 16));
