#!/bin/sh
# Runs the probes of a list and tells which of them fail:
#
#   sh probes.sh PROBES
#
# A line of the list is NAME|COMMAND; blank lines and lines that begin with # do not count.
# Exit codes: 0 all probes are well, 1 some failed, 2 the list cannot be read.
set -u

list=${1:-probes.list}
if [ ! -r "$list" ]; then
  echo "probes: cannot read $list" >&2
  exit 2
fi

# A probe is well when its command ends with 0; what it prints is of no interest.
is_well() {
  sh -c "$1" >/dev/null 2>&1 </dev/null
}

total=0
failed=0
grep -v -e '^#' -e '^$' "$list" | while IFS='|' read -r name command; do
  total=$((total + 1))
  if is_well "$command"; then
    echo "ok    $name"
  else
    echo "FAIL  $name"
    failed=$((failed + 1))
  fi
done

echo "$failed of $total failed"
if [ "$failed" -gt 0 ]; then
  echo "probes: see the list above" >&2
  exit $?
fi
