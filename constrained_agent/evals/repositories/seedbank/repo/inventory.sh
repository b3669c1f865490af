#!/bin/sh
# Prints what the seed bank holds:
#
#   sh inventory.sh [-v] STOCK.csv
#
# A line of the stock is SPECIES,DRAWER,GRAMS. Anything that goes wrong ends the script at once,
# so that a wrong inventory is never printed to its end.
set -eu

verbose=no
if [ "${1:-}" = -v ]; then
    verbose=yes
    shift
fi
if [ $# -ne 1 ]; then
    echo "usage: inventory.sh [-v] STOCK.csv" >&2
    exit 2
fi
stock=$1

note() {
    [ "$verbose" = yes ] && echo "inventory: $1" >&2
}

# Exit code 3 tells of a line that is not SPECIES,DRAWER,GRAMS.
check_lines() {
    awk -F, 'NF != 3 || $3 !~ /^[0-9]+$/ { print "bad line " NR ": " $0; exit 3 }' "$stock" >&2
}

note "reading $stock"
check_lines

packets=$(grep -c '' "$stock")
empty=$(grep -c ',0$' "$stock")
grams=$(awk -F, '{ sum += $3 } END { print sum + 0 }' "$stock")

note "adding up drawers"
drawers=$(cut -d , -f 2 "$stock" | sort -u | grep -c '')

echo "packets: $packets"
echo "empty:   $empty"
echo "grams:   $grams"
echo "drawers: $drawers"
note "done"
