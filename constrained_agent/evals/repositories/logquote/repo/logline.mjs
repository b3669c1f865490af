// One record, one line:
//
//   2024-05-01T06:30:00.000Z warn "pump 3 stopped" valve="A" note="said \"no\""
//
// Message and values may hold any text. What would break the line is written as an escape.

const LEVELS = ["debug", "info", "warn", "error"];
const KEY = /^[a-z][a-z0-9_]*$/;
const HEAD = /^(\S+) (\S+) "((?:[^"\\]|\\.)*)"/;
const PAIR = / ([a-z][a-z0-9_]*)="((?:[^"\\]|\\.)*)"/g;

// What the letter after a backslash stands for; any other character stands for itself.
const LETTERS = { n: "\n", r: "\r", t: "\t" };

/** Text as it may stand between the quotes of a line. */
export function escapeText(text) {
  return text
    .replaceAll("\n", "\\n")
    .replaceAll("\r", "\\r")
    .replaceAll("\t", "\\t")
    .replaceAll('"', '\\"')
    .replaceAll("\\", "\\\\");
}

/** The reverse of escapeText. */
export function unescapeText(text) {
  return text.replace(/\\(.)/g, (_, letter) => LETTERS[letter] ?? letter);
}

function formatPair([key, value]) {
  if (!KEY.test(key)) {
    throw new RangeError(`not a key: ${JSON.stringify(key)}`);
  }
  return ` ${key}="${escapeText(String(value))}"`;
}

/** A record as one line, without a line ending. */
export function formatRecord({ time, level, message, fields = {} }) {
  if (!LEVELS.includes(level)) {
    throw new RangeError(`not a level: ${JSON.stringify(level)}`);
  }
  const pairs = Object.entries(fields).map(formatPair).join("");
  return `${time.toISOString()} ${level} "${message}"${pairs}`;
}

/** The record that a line of formatRecord stands for. */
export function parseRecord(line) {
  const head = HEAD.exec(line);
  if (head === null) {
    throw new SyntaxError(`not a record: ${line}`);
  }
  const fields = {};
  for (const [, key, value] of line.slice(head[0].length).matchAll(PAIR)) {
    fields[key] = unescapeText(value);
  }
  return { time: new Date(head[1]), level: head[2], message: unescapeText(head[3]), fields };
}

/** Help for people who write queries by hand: the backslashes are part of the text. */
export function helpText(program) {
  return `${program} level=warn valve="A"
  \\n  stands for a new line, \\t for a tab, \\\\ for a backslash
  \${name} is not replaced; \`name\` neither`;
}
