"use strict";

const assert = require("node:assert/strict");
const fs = require("node:fs");
const path = require("node:path");
const test = require("node:test");

const checkout = require("./lib/checkout.js");
const rates = require("./lib/rates.js");

const order = (country, price, grams, quantity = 1) => ({ country, lines: [{ price, grams, quantity }] });

test("rates exports the new name and not the old one", () => {
  assert.deepEqual(Object.keys(rates).sort(), ["palletCost", "parcelPrice", "priceList", "zoneOf"]);
  assert.equal(rates.parcelPrice.name, "parcelPrice");
});

test("prices are what they were", () => {
  assert.equal(rates.parcelPrice("NL", 1), 450);
  assert.equal(rates.parcelPrice("DE", 1001), 1170);
  assert.equal(rates.palletCost("SE", 40_000), 12_070);
  assert.deepEqual(
    rates.priceList().map((row) => `${row.zone} ${row.price}`),
    ["home 450", "near 1030", "far 1900"],
  );
  assert.throws(() => rates.parcelPrice("NL", 0), RangeError);
  assert.throws(() => rates.parcelPrice("US", 10), RangeError);
});

test("the summary keeps its field names", () => {
  assert.deepEqual(checkout.summarize(order("BE", 2000, 500)), { goods: 2000, shippingCost: 1030, total: 3030 });
  assert.deepEqual(checkout.summarize(order("BE", 8000, 500, 2)), { goods: 16_000, shippingCost: 0, total: 16_000 });
  assert.equal(checkout.summarize(order("NL", 100, 31_000)).shippingCost, 2570);
});

test("a return is paid for", () => {
  assert.deepEqual(checkout.returnLabel(order("PT", 90_000, 2500)), { price: 2520, text: "Return from PT" });
});

test("nobody calls the old name", () => {
  for (const file of ["rates.js", "checkout.js"]) {
    const text = fs.readFileSync(path.join(__dirname, "lib", file), "utf8");
    assert.ok(!/shippingCost\s*\(/.test(text), `${file} still has shippingCost(...)`);
  }
});
