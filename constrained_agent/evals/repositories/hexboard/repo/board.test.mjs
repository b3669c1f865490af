import assert from "node:assert/strict";
import test from "node:test";

import * as hex from "./board.mjs";

const board = hex.createBoard(7, 6);
const all = [];
for (let row = 0; row < board.height; row += 1) {
  for (let col = 0; col < board.width; col += 1) {
    all.push({ col, row });
  }
}
const opposites = [
  [hex.east, hex.west],
  [hex.northEast, hex.southWest],
  [hex.northWest, hex.southEast],
];

test("a step and its opposite lead back", () => {
  for (const [there, back] of opposites) {
    for (const cell of all) {
      const next = there(cell, board);
      if (next !== null) {
        assert.deepEqual(back(next, board), cell, `${there.name}, ${back.name} from ${hex.labelOf(cell)}`);
      }
      const other = back(cell, board);
      if (other !== null) {
        assert.deepEqual(there(other, board), cell, `${back.name}, ${there.name} from ${hex.labelOf(cell)}`);
      }
    }
  }
});

test("the six neighbours of a cell of an even and of an odd row", () => {
  const labels = (label) => hex.neighbours(hex.cellAt(label), board).map(hex.labelOf).join(" ");
  assert.equal(labels("C3"), "D3 C2 B2 B3 B4 C4");
  assert.equal(labels("C4"), "D4 D3 C3 B4 C5 D5");
  assert.equal(labels("A1"), "B1 A2");
});

test("a neighbour is one step away", () => {
  for (const cell of all) {
    for (const next of hex.neighbours(cell, board)) {
      assert.equal(hex.distance(cell, next), 1);
    }
  }
});

test("reach is distance", () => {
  const from = hex.cellAt("D3");
  const near = all.filter((cell) => hex.distance(from, cell) <= 2).map(hex.labelOf).sort();
  assert.deepEqual(hex.reach(from, 2, board).map(hex.labelOf).sort(), near);
  assert.equal(near.length, 19);
});

test("labels and drawing", () => {
  assert.throws(() => hex.cellAt("A0"), SyntaxError);
  assert.equal(hex.draw(hex.createBoard(3, 2), new Map([["B2", "x"]])), ". . .\n . x .");
});
