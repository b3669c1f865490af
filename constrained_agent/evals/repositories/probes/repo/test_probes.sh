# Run with sh, beside probes.sh.
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failures=0

check() { # NAME LIST EXIT_CODE OUTPUT
  code=0
  found=$(sh probes.sh "$2" 2>/dev/null) || code=$?
  if [ "$code" -ne "$3" ] || [ "$found" != "$4" ]; then
    failures=$((failures + 1))
    printf 'FAILED: %s\n  expected exit code %s and:\n%s\n  got exit code %s and:\n%s\n' "$1" "$3" "$4" "$code" "$found"
  fi
}

cat >"$work/well" <<'END'
# the pumps
intake pump|test 3 -gt 2

outlet|true
END
check "all well" "$work/well" 0 'ok    intake pump
ok    outlet
0 of 2 failed'

cat >"$work/ill" <<'END'
intake pump|test 3 -gt 2 | cat; exit 4
# next: the second one prints and reads, which must not matter
filter|echo loud; cat; true
outlet|no-such-command-here
END
check "two failures" "$work/ill" 1 'FAIL  intake pump
ok    filter
FAIL  outlet
2 of 3 failed'

printf 'one|false\n' >"$work/one"
check "one failure" "$work/one" 1 'FAIL  one
1 of 1 failed'

printf '# nothing yet\n\n' >"$work/none"
check "an empty list" "$work/none" 0 '0 of 0 failed'

check "no list" "$work/missing" 2 ''

[ "$failures" -eq 0 ] && echo "all passed"
exit "$failures"
