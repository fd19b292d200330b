package activity

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"mcpproxy/store"
)

// roleEnv makes the test binary act as another process that records.
const roleEnv = "ACTIVITY_TEST_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(roleEnv) == "" {
		os.Exit(m.Run())
	}
	if err := recordUntilEOF(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// recordUntilEOF is the other process: it adds so many records to the log of the
// file at path, says so, and closes it at the end of stdin.
func recordUntilEOF(path, name, count string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	ctx := context.Background()
	db, err := store.Open(ctx, path, store.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	r := Open(ctx, Options{
		Store: func() *store.DB { return db }, Instance: name,
		Limits:  Limits{Payload: 100, Records: 5000},
		OnError: func(err error) { fmt.Fprintln(os.Stderr, err) },
	})
	for i := range n {
		r.Add(Record{Kind: Call, Status: Success, Server: name, Tool: strconv.Itoa(i)})
	}
	fmt.Println("added")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	r.Close()
	if lost := r.Lost(); lost != (Lost{}) {
		return fmt.Errorf("lost %+v", lost)
	}
	return nil
}

// recorder is a process in that role.
type recorder struct {
	*exec.Cmd
	stdin io.Closer
}

// startRecorder starts one that adds count records; it returns when they were
// added.
func startRecorder(t *testing.T, path, name string, count int) *recorder {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, path, name, strconv.Itoa(count))
	cmd.Env = append(os.Environ(), roleEnv+"=record")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "added\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	return &recorder{cmd, stdin}
}

// end lets it close the log and waits for it.
func (r *recorder) end(t *testing.T) {
	t.Helper()
	_ = r.stdin.Close()
	if err := r.Wait(); err != nil {
		t.Errorf("the other process: %v", err)
	}
}
