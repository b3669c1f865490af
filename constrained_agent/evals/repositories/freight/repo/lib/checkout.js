"use strict";

const { shippingCost, palletCost } = require("./rates.js");

const FREE_FROM = 15_000;
const PALLET_FROM_GRAMS = 30_000;

function sum(lines, value) {
  return lines.reduce((total, line) => total + line.quantity * value(line), 0);
}

function freightOf(order, grams) {
  if (grams > PALLET_FROM_GRAMS) {
    return palletCost(order.country, grams);
  }
  return shippingCost(order.country, grams);
}

/**
 * What the customer pays, in cents. The field names are those of the public API.
 *
 * @param {{country: string, lines: {price: number, grams: number, quantity: number}[]}} order
 */
function summarize(order) {
  const goods = sum(order.lines, (line) => line.price);
  const grams = sum(order.lines, (line) => line.grams);
  const free = goods >= FREE_FROM && grams <= PALLET_FROM_GRAMS;
  const freight = free ? 0 : freightOf(order, grams);
  return { goods, shippingCost: freight, total: goods + freight };
}

/** What returning the whole order would cost: never free, whatever the order was worth. */
function returnLabel(order) {
  const grams = sum(order.lines, (line) => line.grams);
  return { price: shippingCost(order.country, grams), text: `Return from ${order.country}` };
}

module.exports = { summarize, returnLabel };
