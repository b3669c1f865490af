"use strict";

// Prices in cents, weights in grams.

const ZONES = {
  home: { base: 390, perKilo: 60, countries: ["NL"] },
  near: { base: 890, perKilo: 140, countries: ["BE", "DE", "LU"] },
  far: { base: 1590, perKilo: 310, countries: ["ES", "IT", "PT", "SE"] },
};

const MAX_GRAMS = 30_000;

/** The name of the zone that a country belongs to. */
function zoneOf(country) {
  for (const [name, zone] of Object.entries(ZONES)) {
    if (zone.countries.includes(country)) {
      return name;
    }
  }
  throw new RangeError(`we do not deliver to ${country}`);
}

/** What a parcel costs: the base price of the zone, and a price for each kilo that was begun. */
function shippingCost(country, grams) {
  if (grams <= 0 || grams > MAX_GRAMS) {
    throw new RangeError(`a parcel weighs 1 to ${MAX_GRAMS} g, not ${grams}`);
  }
  const { base, perKilo } = ZONES[zoneOf(country)];
  return base + perKilo * Math.ceil(grams / 1000);
}

/** The same for a pallet, which travels at a third of the price per kilo. */
function palletCost(country, grams) {
  const { base, perKilo } = ZONES[zoneOf(country)];
  return 5 * base + Math.round(perKilo / 3) * Math.ceil(grams / 1000);
}

/** All zones with the price of a one-kilo parcel, cheapest first. */
function priceList() {
  return Object.entries(ZONES)
    .map(([name, zone]) => ({ zone: name, price: shippingCost(zone.countries[0], 1000) }))
    .sort((a, b) => a.price - b.price);
}

module.exports = { zoneOf, shippingCost, palletCost, priceList };
