# Functions of a case's script. Lines to the host go to descriptor 3, everything else to the log.

say() { echo "$*" >&3; }
figure() { say "figure $*"; }
note() { say "note $*"; }
fail() { say "check FAIL $*"; }

report() { # NAME CODE-OR-EMPTY: what /tmp/out holds goes along with a failure
    if [ -z "$2" ]; then
        say "check ok $1"
    else
        say "check FAIL $1: $2"
        tail -n 12 /tmp/out | cut -c 1-400 | sed 's/^/| /' >&3
    fi
}

# check NAME COMMAND...: the command ends with 0.
check() {
    local name=$1 code; shift
    if "$@" >/tmp/out 2>&1; then code=; else code="exit code $?"; fi
    cat /tmp/out
    report "$name" "$code"
}

# expect NAME CODE PATTERN COMMAND...: the command ends with CODE (or `[12]`), and says something like
# PATTERN.
expect() {
    local name=$1 code=$2 pattern=$3 got; shift 3
    "$@" >/tmp/out 2>&1; got=$?
    cat /tmp/out
    if ! echo "$got" | grep -qx -- "$code"; then report "$name" "exit code $got, not $code"
    elif ! grep -Eq -- "$pattern" /tmp/out; then report "$name" "it says nothing like /$pattern/"
    else report "$name" ""; fi
}

# holds EXPRESSION: as jq computes it; what is not a number does not hold.
holds() { echo "holds: $1"; jq -en "$1"; }

# ask WORDS...: what the host answers to them.
ask() { say "host $*"; read -r answer <&3; echo "$answer"; }
