# Run with sh, beside inventory.sh.
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failures=0

# expect NAME EXIT_CODE: compares with the last run, whose output is to be $wanted.
expect() {
    if [ "$code" -ne "$2" ] || [ "$(cat "$work/out")" != "$wanted" ]; then
        failures=$((failures + 1))
        echo "FAILED: $1: exit code $code, expected $2; printed:"
        cat "$work/out"
    fi
}

run() {
    code=0
    sh inventory.sh "$@" >"$work/out" 2>"$work/err" || code=$?
}

printf 'Rosa canina,A1,40\nAcer campestre,A1,0\nBellis perennis,C7,5\nArnica,B2,0\n' >"$work/some.csv"
printf 'Rosa canina,A1,40\nBellis perennis,C7,105\n' >"$work/none.csv"
printf 'Rosa canina,A1,40\nBellis perennis,C7\nArnica,B2,0\n' >"$work/bad.csv"

wanted='packets: 4
empty:   2
grams:   45
drawers: 3'
run -v "$work/some.csv"
expect "some packets are empty" 0
[ "$(grep -c '^inventory: ' "$work/err")" -eq 3 ] || { failures=$((failures + 1)); echo "FAILED: -v says three things"; }
run "$work/some.csv"
expect "the same without -v" 0
[ ! -s "$work/err" ] || { failures=$((failures + 1)); echo "FAILED: nothing is noted without -v"; }

wanted='packets: 2
empty:   0
grams:   145
drawers: 2'
run "$work/none.csv"
expect "no packet is empty" 0
run -v "$work/none.csv"
expect "no packet is empty, with -v" 0

wanted=''
run "$work/bad.csv"
expect "a bad line ends the script" 3
grep -q '^bad line 2: ' "$work/err" || { failures=$((failures + 1)); echo "FAILED: the bad line is named"; }
run "$work/missing.csv"
[ "$code" -ne 0 ] && [ ! -s "$work/out" ] || { failures=$((failures + 1)); echo "FAILED: a missing stock"; }
run
expect "no argument" 2

[ "$failures" -eq 0 ] && echo "all passed"
exit "$failures"
