# list the recipes
default:
    @{{just_executable()}} --list --unsorted

# run the tests
test:
    go test ./...

# run the tests under the race detector
race:
    .ci/run race

# check formatting, vet for three systems, staticcheck
lint:
    .ci/run gofmt vet staticcheck

# measure against the yardsticks (some twenty minutes on a quiet machine)
bench *flags:
    go build -trimpath -ldflags "-s -w" -o mcpproxy .
    go run ./testdata/bench -mcpproxy mcpproxy {{flags}}

# one small round of every measurement
bench-smoke:
    .ci/run bench

# put the program between real servers and real clients from npm
e2e:
    .ci/run npm e2e

# fuzz every fuzz test for a few seconds
fuzz:
    .ci/run fuzz

# show what the program does
demo:
    go run . demo

# everything, as for a clean clone
ci:
    .ci/run
