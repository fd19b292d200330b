package upstream

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// inPieces yields at most n bytes at a time.
type inPieces struct {
	r io.Reader
	n int
}

func (p inPieces) Read(b []byte) (int, error) { return p.r.Read(b[:min(len(b), p.n)]) }

func readSSE(r io.Reader, max int) string {
	in := newSSEReader(r, max)
	var out strings.Builder
	for e, err := range in.events() {
		if err != nil {
			return out.String() + "error: " + err.Error()
		}
		fmt.Fprintf(&out, "%s/%s/%s ", e.Type, e.LastEventID, strings.ReplaceAll(e.Data, "\n", "|"))
	}
	if in.retry >= 0 {
		fmt.Fprintf(&out, "retry %v", in.retry)
	}
	return strings.TrimSuffix(out.String(), " ")
}

func TestSSEReader(t *testing.T) {
	for in, want := range map[string]string{
		"":                                            "",
		"\n\n\n":                                      "",
		": only comments\n\n:\n\n":                    "",
		"data: a\n\n":                                 "//a",
		"data:a\n\ndata: b\n\n":                       "//a //b",
		"data: a\ndata: b\n\n":                        "//a|b",
		"event: x\nid: 1\ndata: a\n\n":                "x/1/a",
		"id: 1\ndata: a\n\ndata: b\n\n":               "/1/a /1/b",
		"data: a\r\n\r\ndata: b\r\n\r\n":              "//a //b",
		"data: a\r\rdata: b\r\r":                      "//a //b",
		"data: a\r\n\ndata: b\n\r\n":                  "//a //b",
		"\xef\xbb\xbfdata: a\n\n":                     "//a",
		"data: cut":                                   "",
		"data: a\n\ndata: cut\n":                      "//a",
		"retry: 1500\n\n":                             "retry 1.5s",
		"retry:20\ndata: a\n\n":                       "//a retry 20ms",
		"retry: soon\n\nretry: -5\n\n":                "",
		"retry: 5\r\nid: 3\r\ndata:\r\n\r\n":          "/3/ retry 5ms",
		"data: " + strings.Repeat("x", 5000) + "\n\n": "//" + strings.Repeat("x", 5000),
	} {
		for _, n := range []int{1, 2, 3, 7, 1 << 20} {
			if got := readSSE(inPieces{strings.NewReader(in), n}, 1<<20); got != want {
				t.Errorf("%.60q in pieces of %d: %q, want %q", in, n, got, want)
			}
		}
	}
}

func TestSSEReaderErrors(t *testing.T) {
	broken := io.MultiReader(strings.NewReader("data: a\n\ndata: b"), iotest.ErrReader(errors.New("line dropped")))
	if got := readSSE(broken, 100); got != "//a error: line dropped" {
		t.Errorf("broken: %s", got)
	}
	long := "data: a\n\ndata: " + strings.Repeat("x", 3000) + "\n\n"
	if got := readSSE(inPieces{strings.NewReader(long), 10}, 1000); got != "//a error: "+errTooLarge.Error()+" of 1000 bytes" {
		t.Errorf("too large: %s", got)
	}
	endless := iotest.OneByteReader(io.MultiReader(strings.NewReader("data: a\n\n"), strings.NewReader(strings.Repeat("x", 5000))))
	if got := readSSE(endless, 1000); !strings.HasPrefix(got, "//a error: "+errTooLarge.Error()) {
		t.Errorf("endless line: %s", got)
	}
}

// An event is handed on when its last line is there, not when more comes.
func TestSSEReaderIsPrompt(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	got := make(chan string, 10)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e, err := range newSSEReader(r, 1000).events() {
			if err == nil {
				got <- e.Data
			}
		}
	}()
	for _, end := range []string{"\n\n", "\r\n\r\n", "\r\r", "\n\r"} {
		fmt.Fprint(w, "data: now"+end)
		select {
		case <-got:
		case <-time.After(patience):
			t.Fatalf("nothing came after %q", end)
		}
	}
	w.Close()
	<-done
}

// The time for a large event grows with its size, however it is cut up.
func BenchmarkSSEReader(b *testing.B) {
	for _, size := range []int{1000, 100_000, 5_000_000, 20_000_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			text := "event: message\ndata: " + strings.Repeat("x", size) + "\n\n"
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				for _, err := range newSSEReader(inPieces{strings.NewReader(text), 32 << 10}, 64<<20).events() {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func FuzzSSEReader(f *testing.F) {
	f.Add("retry: 1\nevent: m\r\nid: 2\rdata: {}\n\n: c\n\ndata: x\n\r\n", 3)
	f.Fuzz(func(t *testing.T, text string, n int) {
		whole := readSSE(strings.NewReader(text), 1<<20)
		if got := readSSE(inPieces{strings.NewReader(text), max(n, 1)}, 1<<20); got != whole {
			t.Errorf("in pieces of %d: %q, else %q", n, got, whole)
		}
	})
}
