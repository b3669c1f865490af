// A board of hexagons in straight rows; every odd row is shoved half a cell to the right:
//
//    (0,0) (1,0) (2,0)
//       (0,1) (1,1) (2,1)
//    (0,2) (1,2) (2,2)
//
// A cell is { col, row }. A board is { width, height }.

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

function isOdd(number) {
  return Math.abs(number) % 2 === 1;
}

export function createBoard(width, height) {
  if (width < 1 || height < 1 || width > LETTERS.length) {
    throw new RangeError(`a board has 1 to ${LETTERS.length} columns and a row at least`);
  }
  return { width, height };
}

export function inside(cell, board) {
  return cell.col >= 0 && cell.col < board.width && cell.row >= 0 && cell.row < board.height;
}

export function sameCell(one, other) {
  return one.col === other.col && one.row === other.row;
}

// ---- labels: column as a letter, row from 1, as players say them

export function labelOf(cell) {
  return `${LETTERS[cell.col]}${cell.row + 1}`;
}

export function cellAt(label) {
  const match = /^([A-Z])(\d+)$/.exec(label);
  if (match === null || match[2] === "0") {
    throw new SyntaxError(`not a label: ${label}`);
  }
  return { col: LETTERS.indexOf(match[1]), row: Number(match[2]) - 1 };
}

// ---- one step: the next cell in a direction, or null at the edge of the board

export function east(cell, board) {
  const next = { col: cell.col + 1, row: cell.row };
  if (!inside(next, board)) {
    return null;
  }
  return next;
}

export function west(cell, board) {
  const next = { col: cell.col - 1, row: cell.row };
  if (!inside(next, board)) {
    return null;
  }
  return next;
}

export function northEast(cell, board) {
  const shift = isOdd(cell.row) ? 1 : 0;
  const next = { col: cell.col + shift, row: cell.row - 1 };
  if (!inside(next, board)) {
    return null;
  }
  return next;
}

export function northWest(cell, board) {
  const shift = isOdd(cell.row) ? 0 : -1;
  const next = { col: cell.col + shift, row: cell.row - 1 };
  if (!inside(next, board)) {
    return null;
  }
  return next;
}

export function southEast(cell, board) {
  const shift = isOdd(cell.row) ? 1 : 0;
  const next = { col: cell.col + shift, row: cell.row + 1 };
  if (!inside(next, board)) {
    return null;
  }
  return next;
}

export function southWest(cell, board) {
  const shift = isOdd(cell.row) ? 1 : 0;
  const next = { col: cell.col + shift, row: cell.row + 1 };
  if (!inside(next, board)) {
    return null;
  }
  return next;
}

// ---- around a cell

const STEPS = [east, northEast, northWest, west, southWest, southEast];

export function neighbours(cell, board) {
  return STEPS.map((step) => step(cell, board)).filter((next) => next !== null);
}

/** All cells that a piece reaches in a number of steps, its own cell included, nearest first. */
export function reach(cell, steps, board) {
  const found = [cell];
  let edge = [cell];
  for (let step = 0; step < steps; step += 1) {
    const outer = [];
    for (const next of edge.flatMap((each) => neighbours(each, board))) {
      if (!found.some((known) => sameCell(known, next))) {
        found.push(next);
        outer.push(next);
      }
    }
    edge = outer;
  }
  return found;
}

// ---- distance: three axes that add up to zero

function toCube(cell) {
  const q = cell.col - (cell.row - (isOdd(cell.row) ? 1 : 0)) / 2;
  return { q, r: cell.row, s: -q - cell.row };
}

export function distance(from, to) {
  const a = toCube(from);
  const b = toCube(to);
  return Math.max(Math.abs(a.q - b.q), Math.abs(a.r - b.r), Math.abs(a.s - b.s));
}

// ---- as text, for tests and for playing by mail

export function draw(board, pieces) {
  const rows = [];
  for (let row = 0; row < board.height; row += 1) {
    const marks = [];
    for (let col = 0; col < board.width; col += 1) {
      marks.push(pieces.get(labelOf({ col, row })) ?? ".");
    }
    rows.push((isOdd(row) ? " " : "") + marks.join(" "));
  }
  return rows.join("\n");
}
