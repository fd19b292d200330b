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

# measure against the yardsticks (some forty minutes on a quiet machine; share needs the packages of testdata/npm)
bench *flags:
    go build -trimpath -ldflags "-s -w" -o mcpproxy .
    go run ./testdata/bench -mcpproxy mcpproxy {{flags}}

# measure the search beside the plain mapping of bleve (MCPPROXY_RETRIEVAL names a folder with more data sets)
bench-retrieval:
    go test -run '^$' -bench '^BenchmarkRetrieval$' -benchtime 1x ./index

# count what each mode costs a model, in tokens
tokens:
    go build -trimpath -ldflags "-s -w" -o mcpproxy .
    go run ./testdata/tokens -mcpproxy mcpproxy

# one small round of every measurement
bench-smoke:
    .ci/run npm bench

# put the program between real servers and real clients from npm
e2e:
    .ci/run npm e2e

# the cases and the corpus once more, with shared servers
shared:
    .ci/run shared

# kill instances, hubs and servers at random for a while
chaos time="60s":
    MCPPROXY_CHAOS={{time}} go test -count=1 -timeout 30m -run '^TestChaos$' -v ./cli

# fuzz every fuzz test for a few seconds
fuzz:
    .ci/run fuzz

# show what the program does
demo:
    go run . demo

# everything, as for a clean clone
ci:
    .ci/run
