import assert from "node:assert/strict";
import test from "node:test";

import { escapeText, formatRecord, helpText, parseRecord, unescapeText } from "./logline.mjs";

const time = new Date("2024-05-01T06:30:00Z");

test("escapes are written once", () => {
  assert.equal(escapeText("two\nlines"), String.raw`two\nlines`);
  assert.equal(escapeText('say "no"'), String.raw`say \"no\"`);
  assert.equal(escapeText("a\tb\rc"), String.raw`a\tb\rc`);
  assert.equal(escapeText(String.raw`C:\new\table`), String.raw`C:\\new\\table`);
  assert.equal(escapeText(String.raw`\"`), String.raw`\\\"`);
});

test("every text comes back", () => {
  for (const text of ["", "plain", "\n", "\\n", "\\\n", '\\"', '"', "tab\there", "\\\\", "${x} `y`"]) {
    assert.equal(unescapeText(escapeText(text)), text);
  }
});

test("a plain record is one plain line", () => {
  const line = formatRecord({ time, level: "warn", message: "pump 3 stopped", fields: { valve: "A", bar: 2 } });
  assert.equal(line, '2024-05-01T06:30:00.000Z warn "pump 3 stopped" valve="A" bar="2"');
});

test("a message may hold quotes and new lines", () => {
  const message = 'operator said "off"\nand left';
  const line = formatRecord({ time, level: "info", message, fields: { valve: 'B "2"' } });
  assert.equal(line.split("\n").length, 1);
  assert.deepEqual(parseRecord(line), { time, level: "info", message, fields: { valve: 'B "2"' } });
});

test("what is no record is refused", () => {
  assert.throws(() => parseRecord("hello"), SyntaxError);
  assert.throws(() => formatRecord({ time, level: "loud", message: "" }), RangeError);
  assert.throws(() => formatRecord({ time, level: "info", message: "", fields: { "a b": 1 } }), RangeError);
});

test("the help shows its backslashes", () => {
  assert.match(helpText("grep"), /^grep level=warn valve="A"\n {2}\\n {2}stands .* \\\\ for a backslash\n {2}\$\{name\}/);
});
